package dev.dormouse.model;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufMetadata;

/** Reads the extents of a Llama model from a file's metadata, under llama.cpp's keys. */
final class LlamaConfig {
    private static final String ARCHITECTURE = "llama";
    private static final double DEFAULT_ROPE_BASE = 10_000;

    private LlamaConfig() {}

    static ModelConfig read(GgufFile file) {
        GgufMetadata metadata = file.metadata();
        String architecture = metadata.string("general.architecture");
        if (!architecture.equals(ARCHITECTURE)) {
            throw refused(file, "architecture '" + architecture + "'", ARCHITECTURE);
        }
        int heads = metadata.positiveInt("llama.attention.head_count");
        int width = metadata.positiveInt("llama.embedding_length");
        int headDimension = optional(metadata, "llama.attention.key_length", width / heads);
        ModelConfig config =
                new ModelConfig(
                        metadata.findString("general.name").orElse(file.path().toString()),
                        architecture,
                        vocabularySize(file),
                        width,
                        metadata.positiveInt("llama.block_count"),
                        heads,
                        optional(metadata, "llama.attention.head_count_kv", heads),
                        headDimension,
                        metadata.positiveInt("llama.feed_forward_length"),
                        metadata.positiveInt("llama.context_length"),
                        optional(metadata, "llama.rope.dimension_count", headDimension),
                        (float) metadata.findReal("llama.rope.freq_base").orElse(DEFAULT_ROPE_BASE),
                        (float) metadata.real("llama.attention.layer_norm_rms_epsilon"));
        check(file, config);
        return config;
    }

    private static int vocabularySize(GgufFile file) {
        long rows = file.tensor("token_embd.weight").rows();
        if (rows > Integer.MAX_VALUE) {
            throw refused(file, "vocabulary of " + rows, "at most " + Integer.MAX_VALUE);
        }
        return (int) rows;
    }

    private static int optional(GgufMetadata metadata, String key, int otherwise) {
        return metadata.findInteger(key).isPresent() ? metadata.positiveInt(key) : otherwise;
    }

    private static void check(GgufFile file, ModelConfig config) {
        if (config.heads() % config.kvHeads() != 0) {
            throw refused(
                    file,
                    config.heads() + " heads with " + config.kvHeads() + " KV heads",
                    "a multiple");
        }
        requireBlocks(file, "head dimension", config.headDimension());
        requireBlocks(file, "embedding length", config.embeddingLength());
        requireBlocks(file, "feed-forward length", config.feedForwardLength());
        int rope = config.ropeDimensions();
        if (rope % 2 != 0 || rope > config.headDimension()) {
            throw refused(
                    file,
                    rope + " rotated dimensions",
                    "an even number up to the head dimension " + config.headDimension());
        }
        GgufMetadata metadata = file.metadata();
        int valueLength =
                optional(metadata, "llama.attention.value_length", config.headDimension());
        if (valueLength != config.headDimension()) {
            throw refused(
                    file, "value length " + valueLength, "key length " + config.headDimension());
        }
        String scaling = metadata.findString("llama.rope.scaling.type").orElse("none");
        if (!scaling.equals("none")) {
            throw refused(file, "rope scaling '" + scaling + "'", "none");
        }
        long experts = metadata.findInteger("llama.expert_count").orElse(0);
        if (experts != 0) {
            throw refused(file, experts + " experts", "a dense model");
        }
    }

    private static void requireBlocks(GgufFile file, String what, int elements) {
        if (elements == 0 || elements % BLOCK != 0) {
            throw refused(file, what + " " + elements, "a positive multiple of " + BLOCK);
        }
    }

    private static ModelException refused(GgufFile file, String found, String supported) {
        return new ModelException(
                "open model %s: it has %s, supported is %s"
                        .formatted(file.path(), found, supported));
    }
}
