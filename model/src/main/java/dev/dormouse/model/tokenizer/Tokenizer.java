package dev.dormouse.model.tokenizer;

import dev.dormouse.model.gguf.GgufMetadata;
import dev.dormouse.model.json.JsonFields;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A BPE tokenizer, read from a GGUF file's metadata or from {@code tokenizer.json}.
 *
 * <p>It gives the ids that llama.cpp gives for the one, and Hugging Face's tokenizers for the
 * other. A byte for which the vocabulary has no token (some rare control bytes in SmolLM2's) is
 * left out, as there. Immutable; safe from any thread; it keeps no hold on the file.
 */
public final class Tokenizer {
    private final TokenizerParts parts;
    private final Vocabulary vocabulary;

    private Tokenizer(TokenizerParts parts) {
        this.parts = parts;
        vocabulary = parts.vocabulary();
    }

    /**
     * Reads the tokenizer of a GGUF file.
     *
     * @throws dev.dormouse.model.gguf.GgufException when a key is missing or of the wrong type
     * @throws TokenizerException when the tokenizer is of another kind than byte-level BPE, names a
     *     pre-tokenizer that is not supported, or contradicts itself
     */
    public static Tokenizer of(GgufMetadata metadata) {
        return new Tokenizer(new GgufTokenizer(metadata).read());
    }

    /**
     * Reads the tokenizer of a folder.
     *
     * @param file {@code tokenizer.json}
     * @param config {@code tokenizer_config.json}, which names the BOS and EOS tokens
     * @param endTokens further ids after which generation is over
     * @param modelVocabulary ids that the model gives logits for; those past the tokenizer's own
     *     stand for nothing
     * @throws dev.dormouse.model.ModelException when a field is missing or of the wrong type
     * @throws TokenizerException when the tokenizer is of a kind that is not supported, or
     *     contradicts itself
     */
    public static Tokenizer of(
            JsonFields file,
            Optional<JsonFields> config,
            List<Long> endTokens,
            int modelVocabulary) {
        return new Tokenizer(new JsonTokenizer(file, config, modelVocabulary).read(endTokens));
    }

    /** How many tokens there are; ids run from 0 to one below. */
    public int vocabularySize() {
        return vocabulary.size();
    }

    /** The token that begins a text, if the file names one. */
    public OptionalInt bos() {
        return parts.bos();
    }

    /** The token that ends a text, if the file names one. */
    public OptionalInt eos() {
        return parts.eos();
    }

    /** All tokens after which generation is over: end of text, of turn, of message. */
    public NavigableSet<Integer> endOfGeneration() {
        return parts.endTokens();
    }

    /** Whether generation is over after that token. */
    public boolean isEndOfGeneration(int token) {
        return parts.endTokens().contains(token);
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
        if (addSpecial) {
            tokens.addAll(parts.before());
        }
        encodePieces(
                parts.specials(),
                wellFormed,
                true,
                parseSpecial,
                tokens,
                (piece, first, out) -> encodeNormalised(piece, first, parseSpecial, out));
        if (addSpecial) {
            tokens.addAll(parts.after());
        }
        return tokens.toArray();
    }

    private void encodeNormalised(
            String piece, boolean first, boolean parseSpecial, IntList tokens) {
        encodePieces(
                parts.laterSpecials(),
                parts.normalizer().apply(piece),
                first,
                parseSpecial,
                tokens,
                parts.encoder());
    }

    private static void encodePieces(
            SpecialTokens specials,
            String text,
            boolean beginsText,
            boolean parseSpecial,
            IntList tokens,
            PieceEncoder encoder) {
        int position = 0;
        while (position < text.length()) {
            SpecialTokens.@Nullable Match match = specials.find(text, position, parseSpecial);
            int end = match == null ? text.length() : match.start();
            if (end > position) {
                boolean first = beginsText && position == 0;
                encoder.encode(text.substring(position, end), first, tokens);
            }
            position = end;
            if (match != null) {
                tokens.add(match.token());
                position += match.length();
            }
        }
    }

    /**
     * The text of tokens. Control tokens are left out, and what is not UTF-8 becomes U+FFFD. The
     * space that SentencePiece's vocabularies put before the first word stays.
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
}
