package dev.dormouse.model.tokenizer;

import dev.dormouse.model.gguf.GgufMetadata;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.UnaryOperator;

/** Reads a byte-level BPE tokenizer from a GGUF file's metadata, as llama.cpp takes it. */
final class GgufTokenizer {
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

    private final GgufMetadata metadata;
    private final Vocabulary vocabulary;

    GgufTokenizer(GgufMetadata metadata) {
        String model = metadata.string("tokenizer.ggml.model");
        if (!model.equals("gpt2")) {
            throw new TokenizerException(
                    "load tokenizer: tokenizer.ggml.model '%s' is not supported, only 'gpt2'"
                            .formatted(model));
        }
        this.metadata = metadata;
        vocabulary = Vocabulary.of(metadata);
    }

    TokenizerParts read() {
        PreTokenizer preTokenizer = PreTokenizer.named(metadata.string("tokenizer.ggml.pre"));
        OptionalInt bos = token("tokenizer.ggml.bos_token_id");
        OptionalInt eos = token("tokenizer.ggml.eos_token_id");
        return new TokenizerParts(
                vocabulary,
                SpecialTokens.of(vocabulary),
                UnaryOperator.identity(),
                SpecialTokens.NONE,
                new ByteLevelEncoder(
                        vocabulary,
                        preTokenizer,
                        merges(),
                        preTokenizer.hasLlama3Habits(),
                        UnknownToken.NONE),
                added("bos", bos, preTokenizer.hasLlama3Habits()),
                added("eos", eos, false),
                bos,
                eos,
                endTokens(eos));
    }

    private PairMerges merges() {
        String key = "tokenizer.ggml.merges";
        List<List<String>> pairs = new ArrayList<>();
        for (String line : metadata.strings(key)) {
            int space = line.indexOf(' ', 1);
            pairs.add(
                    space < 0
                            ? List.of(line)
                            : List.of(line.substring(0, space), line.substring(space + 1)));
        }
        return PairMerges.of(pairs, vocabulary, key);
    }

    private OptionalInt token(String key) {
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

    /** The token that texts begin or end with, if they do. */
    private int[] added(String name, OptionalInt token, boolean byDefault) {
        String key = "tokenizer.ggml.add_" + name + "_token";
        boolean adds = metadata.findBool(key).orElse(byDefault);
        if (adds && token.isEmpty()) {
            throw new TokenizerException(
                    "load tokenizer: texts have %s tokens (%s), but no id is given"
                            .formatted(name, key));
        }
        return adds ? new int[] {token.getAsInt()} : new int[0];
    }

    private NavigableSet<Integer> endTokens(OptionalInt eos) {
        NavigableSet<Integer> ends = new TreeSet<>();
        eos.ifPresent(ends::add);
        token("tokenizer.ggml.eot_token_id").ifPresent(ends::add);
        token("tokenizer.ggml.eom_token_id").ifPresent(ends::add);
        for (String name : END_NAMES) {
            int id = vocabulary.id(name);
            if (id >= 0 && vocabulary.kind(id) == TokenKind.CONTROL) {
                ends.add(id);
            }
        }
        return Collections.unmodifiableNavigableSet(ends);
    }
}
