package dev.dormouse.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufWriter;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.TensorBytes;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Each architecture, with biases or norms of heads, split among ranks; its matrices in types whose
 * blocks in the file are longer than what a rank has of a row.
 */
final class RankedArchitectureTest {
    private static final int VOCABULARY = 150;
    private static final int WIDTH = 256;
    private static final int HEADS = 4;
    private static final int KV_HEADS = 2;
    private static final int HEAD = 64;
    private static final int INNER = 768;

    @TempDir private Path directory;

    /** Collects a model of one layer. */
    private static final class Writer {
        private final GgufWriter file = new GgufWriter();
        private final SplittableRandom random = new SplittableRandom(7);
        private final TensorType type;

        Writer(String architecture, TensorType type) {
            this.type = type;
            file.string("general.architecture", architecture)
                    .string("general.name", "tiny")
                    .uint32(architecture + ".block_count", 1)
                    .uint32(architecture + ".context_length", 128)
                    .uint32(architecture + ".embedding_length", WIDTH)
                    .uint32(architecture + ".feed_forward_length", INNER)
                    .uint32(architecture + ".attention.head_count", HEADS)
                    .uint32(architecture + ".attention.head_count_kv", KV_HEADS)
                    .float32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
            matrix("token_embd", VOCABULARY, WIDTH);
            vector("blk.0.attn_norm.weight", WIDTH);
            matrix("blk.0.attn_q", HEADS * HEAD, WIDTH);
            matrix("blk.0.attn_k", KV_HEADS * HEAD, WIDTH);
            matrix("blk.0.attn_v", KV_HEADS * HEAD, WIDTH);
            if (architecture.equals("qwen2")) {
                vector("blk.0.attn_q.bias", HEADS * HEAD);
                vector("blk.0.attn_k.bias", KV_HEADS * HEAD);
                vector("blk.0.attn_v.bias", KV_HEADS * HEAD);
            }
            if (architecture.equals("qwen3")) {
                vector("blk.0.attn_q_norm.weight", HEAD);
                vector("blk.0.attn_k_norm.weight", HEAD);
            }
            matrix("blk.0.attn_output", WIDTH, HEADS * HEAD);
            vector("blk.0.ffn_norm.weight", WIDTH);
            matrix("blk.0.ffn_gate", INNER, WIDTH);
            matrix("blk.0.ffn_up", INNER, WIDTH);
            matrix("blk.0.ffn_down", WIDTH, INNER);
            vector("output_norm.weight", WIDTH);
        }

        private void matrix(String name, int rows, int width) {
            byte[] bytes = TensorBytes.random(type, rows, width, 0.3f, random);
            file.tensor(name + ".weight", type, bytes, width, rows);
        }

        private void vector(String name, int elements) {
            byte[] bytes = TensorBytes.random(TensorType.F32, 1, elements, 1.5f, random);
            file.tensor(name, TensorType.F32, bytes, elements);
        }
    }

    @ParameterizedTest
    @CsvSource({"llama, Q4_K", "qwen2, Q5_K", "qwen3, Q6_K", "qwen2, F16", "qwen3, Q8_0"})
    void logitsAreThoseOfOneRankBitForBit(String architecture, TensorType type) {
        Path path = new Writer(architecture, type).file.write(directory.resolve("model.gguf"));
        int[] tokens = new SplittableRandom(1).ints(21, 0, VOCABULARY).toArray();
        try (GgufFile file = GgufFile.open(path)) {
            float[] one = logits(file, 1, tokens);
            for (float logit : one) {
                assertThat(logit).isFinite();
            }
            for (int ranks : new int[] {2, 4}) {
                assertThat(logits(file, ranks, tokens)).as("%d ranks", ranks).isEqualTo(one);
            }
        }
    }

    private static float[] logits(GgufFile file, int ranks, int[] tokens) {
        try (LlamaModel model = LlamaModel.open(file, 2, ranks);
                ModelMemory memory = new ModelMemory(model, 2, 16, KvType.F16)) {
            int[] blocks = {1, 0};
            int last = tokens.length - 1;
            var _ = memory.forward(new SequenceChunk(Arrays.copyOf(tokens, last), 0, blocks, 0));
            List<float[]> rows =
                    memory.forward(new SequenceChunk(new int[] {tokens[last]}, last, blocks, 1));
            return rows.getFirst();
        }
    }
}
