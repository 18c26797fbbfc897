package dev.dormouse.model.tokenizer;

import dev.dormouse.model.gguf.GgufMetadata;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * A byte-level BPE tokenizer, read from a GGUF file's metadata.
 *
 * <p>It gives the ids that llama.cpp gives. A byte for which the vocabulary has no token (some rare
 * control bytes in SmolLM2's) is left out, as there. Immutable; safe from any thread; it keeps no
 * hold on the file.
 */
public final class Tokenizer {
    /**
     * Control tokens that end a turn or a document by convention, whether or not the file's keys
     * name them. From llama.cpp's list, without those of architectures that are not supported.
     */
    private static final Set<String> END_NAMES =
            Set.of(
                    "<|im_end|>",
                    "<|endoftext|>",
                    "<|eot_id|>",
                    "<|eom_id|>",
                    "<|end_of_text|>",
                    "<|end|>",
                    "<end_of_turn>",
                    "</s>",
                    "<EOT>");

    private final Vocabulary vocabulary;
    private final PreTokenizer preTokenizer;
    private final PairMerges merges;
    private final SpecialTokens specialTokens;
    private final int[] byteTokens;
    private final OptionalInt bos;
    private final OptionalInt eos;
    private final boolean addsBos;
    private final boolean addsEos;
    private final NavigableSet<Integer> endTokens;

    private Tokenizer(GgufMetadata metadata) {
        vocabulary = new Vocabulary(metadata);
        preTokenizer = PreTokenizer.named(metadata.string("tokenizer.ggml.pre"));
        merges = merges(metadata, vocabulary);
        specialTokens = new SpecialTokens(vocabulary);
        byteTokens = new int[256];
        for (int b = 0; b < 256; b++) {
            byteTokens[b] = vocabulary.id(ByteAlphabet.spell(new byte[] {(byte) b}));
        }
        bos = token(metadata, "tokenizer.ggml.bos_token_id");
        eos = token(metadata, "tokenizer.ggml.eos_token_id");
        addsBos = adds(metadata, "bos", bos, preTokenizer.addsBosByDefault());
        addsEos = adds(metadata, "eos", eos, false);
        endTokens = endTokens(metadata);
    }

    /**
     * Reads the tokenizer.
     *
     * @throws dev.dormouse.model.gguf.GgufException when a key is missing or of the wrong type
     * @throws TokenizerException when the tokenizer is of another kind than byte-level BPE, names a
     *     pre-tokenizer that is not supported, or contradicts itself
     */
    public static Tokenizer of(GgufMetadata metadata) {
        String model = metadata.string("tokenizer.ggml.model");
        if (!model.equals("gpt2")) {
            throw new TokenizerException(
                    "load tokenizer: tokenizer.ggml.model '%s' is not supported, only 'gpt2'"
                            .formatted(model));
        }
        return new Tokenizer(metadata);
    }

    /** How many tokens there are; ids run from 0 to one below. */
    public int vocabularySize() {
        return vocabulary.size();
    }

    /** The token that begins a text, if the file names one. */
    public OptionalInt bos() {
        return bos;
    }

    /** The token that ends a text, if the file names one. */
    public OptionalInt eos() {
        return eos;
    }

    /** All tokens after which generation is over: end of text, of turn, of message. */
    public NavigableSet<Integer> endOfGeneration() {
        return endTokens;
    }

    /** Whether generation is over after that token. */
    public boolean isEndOfGeneration(int token) {
        return endTokens.contains(token);
    }

    /**
     * The ids of a text.
     *
     * <p>Unpaired surrogates count as U+FFFD.
     *
     * @param addSpecial whether to add BOS and EOS where the file says that texts have them
     * @param parseSpecial whether the spelling of a control token, such as {@code <|im_end|>},
     *     means that token; when false it is plain text, which is right for what users write
     */
    public int[] encode(String text, boolean addSpecial, boolean parseSpecial) {
        String wellFormed = replaceUnpairedSurrogates(text);
        IntList tokens = new IntList();
        if (addSpecial && addsBos) {
            tokens.add(bos.getAsInt());
        }
        int position = 0;
        while (position < wellFormed.length()) {
            SpecialTokens.@Nullable Match match =
                    specialTokens.find(wellFormed, position, parseSpecial);
            int end = match == null ? wellFormed.length() : match.start();
            preTokenizer.split(wellFormed, position, end, word -> encodeWord(word, tokens));
            position = end;
            if (match != null) {
                tokens.add(match.token());
                position += match.length();
            }
        }
        if (addSpecial && addsEos) {
            tokens.add(eos.getAsInt());
        }
        return tokens.toArray();
    }

    /**
     * The text of tokens. Control tokens are left out, and what is not UTF-8 becomes U+FFFD.
     *
     * @throws IllegalArgumentException when a token is not in the vocabulary
     */
    public String decode(int... tokens) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int token : tokens) {
            bytes.writeBytes(visibleBytes(token, true));
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /** A new decoder that takes tokens one by one, and leaves control tokens out. */
    public IncrementalDecoder decoder() {
        return decoder(true);
    }

    /** A new decoder, which writes control tokens as they are spelled unless it skips them. */
    public IncrementalDecoder decoder(boolean skipSpecial) {
        return new IncrementalDecoder(this, skipSpecial);
    }

    /**
     * A copy of the bytes that a token stands for; of a control token, its spelling.
     *
     * @throws IllegalArgumentException when the token is not in the vocabulary
     */
    public byte[] tokenBytes(int token) {
        return vocabulary.bytes(checked(token)).clone();
    }

    /**
     * Whether a token is left out of decoded text.
     *
     * @throws IllegalArgumentException when the token is not in the vocabulary
     */
    public boolean isHidden(int token) {
        return switch (vocabulary.kind(checked(token))) {
            case NORMAL, USER_DEFINED -> false;
            case UNDEFINED, UNKNOWN, CONTROL, UNUSED, BYTE -> true;
        };
    }

    /** The bytes that a token adds to decoded text; the caller must not change them. */
    byte[] visibleBytes(int token, boolean skipSpecial) {
        return skipSpecial && isHidden(token) ? new byte[0] : vocabulary.bytes(checked(token));
    }

    private int checked(int token) {
        if (token < 0 || token >= vocabulary.size()) {
            throw new IllegalArgumentException(
                    "decode token: id %d is outside the vocabulary of %d"
                            .formatted(token, vocabulary.size()));
        }
        return token;
    }

    private void encodeWord(String word, IntList tokens) {
        byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
        if (preTokenizer.prefersWholeWords()) {
            int whole = vocabulary.id(ByteAlphabet.spell(bytes));
            if (whole >= 0 && vocabulary.kind(whole) == TokenKind.NORMAL) {
                tokens.add(whole);
                return;
            }
        }
        int[] ids = new int[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            ids[i] = byteTokens[bytes[i] & 0xff];
        }
        int count = merges.merge(ids);
        for (int i = 0; i < count; i++) {
            if (ids[i] >= 0) {
                tokens.add(ids[i]);
            }
        }
    }

    private static PairMerges merges(GgufMetadata metadata, Vocabulary vocabulary) {
        String key = "tokenizer.ggml.merges";
        List<String> lines = metadata.strings(key);
        PairMerges merges = new PairMerges(lines.size());
        for (int rank = 0; rank < lines.size(); rank++) {
            String line = lines.get(rank);
            int space = line.indexOf(' ', 1);
            int left = space < 0 ? -1 : vocabulary.id(line.substring(0, space));
            int right = space < 0 ? -1 : vocabulary.id(line.substring(space + 1));
            int merged =
                    space < 0
                            ? -1
                            : vocabulary.id(
                                    line.substring(0, space).concat(line.substring(space + 1)));
            if (left < 0 || right < 0 || merged < 0) {
                throw new TokenizerException(
                        "load tokenizer: entry %d of '%s', '%s', is no pair of tokens with a token"
                                .formatted(rank, key, line));
            }
            merges.add(left, right, rank, merged);
        }
        return merges;
    }

    private OptionalInt token(GgufMetadata metadata, String key) {
        OptionalLong id = metadata.findInteger(key);
        if (id.isEmpty()) {
            return OptionalInt.empty();
        }
        if (id.getAsLong() < 0 || id.getAsLong() >= vocabulary.size()) {
            throw new TokenizerException(
                    "load tokenizer: '%s' is %d, outside the vocabulary of %d"
                            .formatted(key, id.getAsLong(), vocabulary.size()));
        }
        return OptionalInt.of((int) id.getAsLong());
    }

    private static boolean adds(
            GgufMetadata metadata, String name, OptionalInt token, boolean byDefault) {
        String key = "tokenizer.ggml.add_" + name + "_token";
        boolean adds = metadata.findBool(key).orElse(byDefault);
        if (adds && token.isEmpty()) {
            throw new TokenizerException(
                    "load tokenizer: texts have %s tokens (%s), but no id is given"
                            .formatted(name, key));
        }
        return adds;
    }

    private NavigableSet<Integer> endTokens(GgufMetadata metadata) {
        NavigableSet<Integer> ends = new TreeSet<>();
        eos.ifPresent(ends::add);
        token(metadata, "tokenizer.ggml.eot_token_id").ifPresent(ends::add);
        token(metadata, "tokenizer.ggml.eom_token_id").ifPresent(ends::add);
        for (String name : END_NAMES) {
            int id = vocabulary.id(name);
            if (id >= 0 && vocabulary.kind(id) == TokenKind.CONTROL) {
                ends.add(id);
            }
        }
        return Collections.unmodifiableNavigableSet(ends);
    }

    private static String replaceUnpairedSurrogates(String text) {
        if (text.codePoints().noneMatch(Tokenizer::isSurrogate)) {
            return text;
        }
        StringBuilder replaced = new StringBuilder(text.length());
        text.codePoints().forEach(c -> replaced.appendCodePoint(isSurrogate(c) ? 0xfffd : c));
        return replaced.toString();
    }

    private static boolean isSurrogate(int codePoint) {
        return codePoint >= Character.MIN_SURROGATE && codePoint <= Character.MAX_SURROGATE;
    }

    /** A growing row of ints. */
    private static final class IntList {
        private int[] values = new int[16];
        private int count;

        void add(int value) {
            if (count == values.length) {
                values = Arrays.copyOf(values, count * 2);
            }
            values[count++] = value;
        }

        int[] toArray() {
            return Arrays.copyOf(values, count);
        }
    }
}
