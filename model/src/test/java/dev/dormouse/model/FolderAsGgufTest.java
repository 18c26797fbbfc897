package dev.dormouse.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.folder.ModelFolder;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufWriter;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The models of the folders in GGUF files, as llama.cpp's converter writes them: vectors in F32,
 * and Llama's queries and keys with the two halves of a head in turn.
 */
final class FolderAsGgufTest {
    private static final Map<String, String> NAMES =
            Map.ofEntries(
                    Map.entry("model.embed_tokens", "token_embd"),
                    Map.entry("model.norm", "output_norm"),
                    Map.entry("lm_head", "output"),
                    Map.entry("input_layernorm", "attn_norm"),
                    Map.entry("self_attn.q_proj", "attn_q"),
                    Map.entry("self_attn.k_proj", "attn_k"),
                    Map.entry("self_attn.v_proj", "attn_v"),
                    Map.entry("self_attn.q_norm", "attn_q_norm"),
                    Map.entry("self_attn.k_norm", "attn_k_norm"),
                    Map.entry("self_attn.o_proj", "attn_output"),
                    Map.entry("post_attention_layernorm", "ffn_norm"),
                    Map.entry("mlp.gate_proj", "ffn_gate"),
                    Map.entry("mlp.up_proj", "ffn_up"),
                    Map.entry("mlp.down_proj", "ffn_down"));

    @TempDir private Path directory;

    private static String ggufName(String name) {
        int dot = name.lastIndexOf('.');
        String stem = name.substring(0, dot);
        String prefix = "";
        if (stem.startsWith("model.layers.")) {
            String[] parts = stem.split("\\.", 4);
            prefix = "blk." + parts[2] + ".";
            stem = parts[3];
        }
        return prefix + NAMES.get(stem) + name.substring(dot);
    }

    private static byte[] widened(TensorType type, byte[] bytes) {
        if (type == TensorType.F32) {
            return bytes;
        }
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer out = ByteBuffer.allocate(2 * bytes.length).order(ByteOrder.LITTLE_ENDIAN);
        while (in.hasRemaining()) {
            short bits = in.getShort();
            out.putFloat(
                    type == TensorType.F16
                            ? Float.float16ToFloat(bits)
                            : Float.intBitsToFloat(bits << 16));
        }
        return out.array();
    }

    /** Rows 0, 16, 1, 17 and so on of each head of 32. */
    private static byte[] interleaved(byte[] bytes, int rowBytes) {
        byte[] out = new byte[bytes.length];
        for (int row = 0; row < bytes.length / rowBytes; row++) {
            int element = row % 32;
            int from = row - element + element / 2 + element % 2 * 16;
            System.arraycopy(bytes, from * rowBytes, out, row * rowBytes, rowBytes);
        }
        return out;
    }

    private static GgufWriter writer(ModelFolder folder) {
        ModelConfig config = folder.config();
        String prefix = config.architecture() + ".";
        GgufWriter writer =
                new GgufWriter()
                        .string("general.architecture", config.architecture())
                        .uint32(prefix + "block_count", config.layers())
                        .uint32(prefix + "context_length", config.contextLength())
                        .uint32(prefix + "embedding_length", config.embeddingLength())
                        .uint32(prefix + "feed_forward_length", config.feedForwardLength())
                        .uint32(prefix + "attention.head_count", config.heads())
                        .uint32(prefix + "attention.head_count_kv", config.kvHeads())
                        .uint32(prefix + "attention.key_length", config.headDimension())
                        .uint32(prefix + "attention.value_length", config.headDimension())
                        .float32(prefix + "rope.freq_base", config.ropeBase())
                        .float32(prefix + "attention.layer_norm_rms_epsilon", config.rmsEpsilon());
        for (TensorInfo tensor : folder.tensors()) {
            byte[] bytes = folder.data(tensor).toArray(ValueLayout.JAVA_BYTE);
            String name = ggufName(tensor.name());
            TensorType type = tensor.type();
            if (tensor.shape().size() == 1) {
                bytes = widened(type, bytes);
                type = TensorType.F32;
            } else if (prefix.equals("llama.") && name.matches(".*attn_[qk].weight")) {
                bytes = interleaved(bytes, (int) tensor.rowBytes());
            }
            long[] shape = tensor.shape().stream().mapToLong(Long::longValue).toArray();
            writer.tensor(name, type, bytes, shape);
        }
        return writer;
    }

    private static List<float[]> logits(LlamaModel model) {
        try (ModelMemory memory = new ModelMemory(model, 6, 16, KvType.F16)) {
            int[] tokens = new SplittableRandom(7).ints(90, 0, 384).toArray();
            int[] blocks = {3, 1, 5, 0, 2, 4};
            return memory.forward(new SequenceChunk(tokens, 0, blocks, 90));
        }
    }

    private void assertSameLogits(ModelFolder folder, GgufWriter writer) {
        Path path = writer.write(directory.resolve("model.gguf"));
        try (ModelFiles gguf = ModelFiles.open(path);
                LlamaModel ggufModel = gguf.openModel(2);
                LlamaModel folderModel = folder.openModel(2)) {
            List<float[]> expected = logits(folderModel);
            List<float[]> actual = logits(ggufModel);
            for (int row = 0; row < expected.size(); row++) {
                assertThat(actual.get(row)).as("row %d", row).isEqualTo(expected.get(row));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"qwen2", "qwen3"})
    void theSameWeightsGiveTheSameLogits(String name) {
        try (ModelFolder folder = ModelFolder.open(TestFolders.folder(name))) {
            assertSameLogits(folder, writer(folder));
        }
    }

    /** llama.cpp keeps the divisors of frequencies in single precision. */
    @Test
    void llama3sDivisorsAreATensor() {
        Path copy = TestFolders.copy("llama", directory.resolve("llama"));
        TestFolders.change(
                copy.resolve("config.json"),
                config -> {
                    // Divisors of 1 and 4, which are exact.
                    config.withObject("rope_scaling").put("factor", 4.0);
                    config.withObject("rope_scaling").put("low_freq_factor", 3.999);
                });
        try (ModelFolder folder = ModelFolder.open(copy)) {
            List<Double> divisors = folder.config().ropeDivisors();
            assertThat(divisors).containsOnly(1.0, 4.0);
            ByteBuffer floats = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
            divisors.forEach(divisor -> floats.putFloat(divisor.floatValue()));
            assertSameLogits(
                    folder,
                    writer(folder).tensor("rope_freqs.weight", TensorType.F32, floats.array(), 16));
        }
    }

    @Test
    void divisorsThatAreNoPositiveNumbersAreRefused() {
        try (ModelFolder folder = ModelFolder.open(TestFolders.folder("llama"))) {
            byte[] zeros = new byte[64];
            GgufWriter writer =
                    writer(folder).tensor("rope_freqs.weight", TensorType.F32, zeros, 16);
            Path path = writer.write(directory.resolve("zeros.gguf"));
            try (GgufFile file = GgufFile.open(path)) {
                org.assertj.core.api.Assertions.assertThatThrownBy(() -> LlamaModel.open(file, 1))
                        .isInstanceOf(ModelException.class)
                        .hasMessageContaining("0.0 in 'rope_freqs.weight'");
            }
        }
    }
}
