package dev.dormouse.model;

import dev.dormouse.model.gguf.GgufWriter;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.TensorBytes;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * A random Llama model of a few kilobytes.
 *
 * @param tensors by name without {@code .weight}, in the file's order
 */
record TinyModel(boolean tied, Map<String, Tensor> tensors) {
    static final int VOCABULARY = 139;
    static final int WIDTH = 64;
    static final int LAYERS = 2;
    static final int HEADS = 4;
    static final int KV_HEADS = 2;
    static final int HEAD = 32;
    static final int INNER = 128;
    static final int CONTEXT = 160;
    static final int ROPE = 24;
    static final float ROPE_BASE = 5000;
    static final float EPSILON = 1e-4f;

    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Tensor(TensorType type, int rows, int width, byte[] bytes) {
        double value(int row, int column) {
            return TensorBytes.value(type, bytes, row * width + column);
        }
    }

    /** A model whose matrices have the types in turn. */
    static TinyModel random(boolean tied, SplittableRandom random, TensorType... types) {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        Builder builder = new Builder(tensors, random, types);
        builder.matrix("token_embd", VOCABULARY, WIDTH);
        for (int i = 0; i < LAYERS; i++) {
            String block = "blk." + i + ".";
            builder.norm(block + "attn_norm");
            builder.matrix(block + "attn_q", HEADS * HEAD, WIDTH);
            builder.matrix(block + "attn_k", KV_HEADS * HEAD, WIDTH);
            builder.matrix(block + "attn_v", KV_HEADS * HEAD, WIDTH);
            builder.matrix(block + "attn_output", WIDTH, HEADS * HEAD);
            builder.norm(block + "ffn_norm");
            builder.matrix(block + "ffn_gate", INNER, WIDTH);
            builder.matrix(block + "ffn_up", INNER, WIDTH);
            builder.matrix(block + "ffn_down", WIDTH, INNER);
        }
        builder.norm("output_norm");
        if (!tied) {
            builder.matrix("output", VOCABULARY, WIDTH);
        }
        return new TinyModel(tied, tensors);
    }

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Builder(
            Map<String, Tensor> tensors, SplittableRandom random, TensorType... types) {
        void matrix(String name, int rows, int width) {
            TensorType type = types[tensors.size() % types.length];
            byte[] bytes = TensorBytes.random(type, rows, width, 0.3f, random);
            tensors.put(name, new Tensor(type, rows, width, bytes));
        }

        void norm(String name) {
            byte[] bytes = TensorBytes.random(TensorType.F32, 1, WIDTH, 1.5f, random);
            tensors.put(name, new Tensor(TensorType.F32, 1, WIDTH, bytes));
        }
    }

    Tensor tensor(String name) {
        return java.util.Objects.requireNonNull(tensors.get(name), name);
    }

    /** The file, with its metadata, ready for changes. */
    GgufWriter writer() {
        GgufWriter writer =
                new GgufWriter()
                        .string("general.architecture", "llama")
                        .string("general.name", "tiny")
                        .uint32("llama.block_count", LAYERS)
                        .uint32("llama.context_length", CONTEXT)
                        .uint32("llama.embedding_length", WIDTH)
                        .uint32("llama.feed_forward_length", INNER)
                        .uint32("llama.attention.head_count", HEADS)
                        .uint32("llama.attention.head_count_kv", KV_HEADS)
                        .uint32("llama.attention.key_length", HEAD)
                        .uint32("llama.attention.value_length", HEAD)
                        .uint32("llama.rope.dimension_count", ROPE)
                        .float32("llama.rope.freq_base", ROPE_BASE)
                        .float32("llama.attention.layer_norm_rms_epsilon", EPSILON);
        tensors.forEach(
                (name, tensor) -> {
                    long[] shape =
                            name.endsWith("norm")
                                    ? new long[] {tensor.width()}
                                    : new long[] {tensor.width(), tensor.rows()};
                    writer.tensor(name + ".weight", tensor.type(), tensor.bytes(), shape);
                });
        return writer;
    }

    Path write(Path directory) {
        return writer().write(directory.resolve("tiny.gguf"));
    }
}
