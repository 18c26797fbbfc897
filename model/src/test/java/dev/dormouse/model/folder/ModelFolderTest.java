package dev.dormouse.model.folder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.ModelMemory;
import dev.dormouse.model.TestFolders;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.function.Consumer;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a folder says, and what it must not say. */
final class ModelFolderTest {
    @TempDir private Path directory;

    private Path copy(String name) {
        return TestFolders.copy(name, directory.resolve(name));
    }

    private void assertRefused(String name, Consumer<ObjectNode> change, String message) {
        Path folder = TestFolders.copy(name, directory.resolve("case-" + message.hashCode()));
        TestFolders.change(folder.resolve("config.json"), change);
        assertRefused(folder, message);
    }

    private static void assertRefused(Path folder, String message) {
        assertThatThrownBy(
                        () -> {
                            try (ModelFiles files = ModelFiles.open(folder)) {
                                files.openModel(1).close();
                            }
                        })
                .isInstanceOf(ModelException.class)
                .hasMessageContaining(message);
    }

    @Test
    void theConfigurationIsTheFolders() {
        try (ModelFolder folder = ModelFolder.open(TestFolders.folder("qwen3"))) {
            assertThat(folder.config())
                    .isEqualTo(
                            new ModelConfig(
                                    "qwen3", "qwen3", 384, 64, 2, 4, 2, 32, 96, 256, 32, 10_000,
                                    1e-6f, List.of()));
        }
    }

    /** The divisors are those that transformers' _compute_llama3_parameters gives, by hand. */
    @Test
    void llama3ScalesSlowFrequenciesAndKeepsFastOnes() {
        try (ModelFolder folder = ModelFolder.open(TestFolders.folder("llama"))) {
            List<Double> divisors = folder.config().ropeDivisors();
            assertThat(divisors).hasSize(16);
            assertThat(divisors.getFirst()).isEqualTo(1);
            assertThat(divisors.getLast()).isEqualTo(8);
            // Pair 1: 64 / (2 pi / 500000^(-1/16)) = 4.4856 turns, over 4; pair 2: 1.9754.
            assertThat(divisors.get(1)).isEqualTo(1);
            assertThat(divisors.get(2)).isCloseTo(1 / (0.675 / 8 + 0.325), Offset.offset(2e-2));
            assertThat(divisors.get(3)).isEqualTo(8);
        }
    }

    @Test
    void modelsOfOtherKindsAreRefusedByName() {
        assertRefused("qwen2", c -> c.putArray("architectures").add("GemmaForCausalLM"), "[Gemma");
        assertRefused("qwen2", c -> c.remove("architectures"), "'architectures' []");
        assertRefused("qwen2", c -> c.put("hidden_act", "gelu"), "'hidden_act' 'gelu'");
        assertRefused("qwen2", c -> c.put("use_sliding_window", true), "'use_sliding_window'");
        assertRefused("qwen3", c -> c.put("attention_bias", true), "'attention_bias' true");
        assertRefused("llama", c -> c.put("mlp_bias", true), "'mlp_bias' true");
        assertRefused(
                "qwen3",
                c -> c.putArray("layer_types").add("sliding_attention"),
                "'sliding_attention'");
        assertRefused(
                "qwen2",
                c -> c.putObject("quantization_config").put("quant_method", "awq"),
                "'quantization_config' awq");
        assertRefused(
                "qwen2",
                c -> c.putObject("rope_scaling").put("type", "yarn").put("factor", 4.0),
                "rope scaling 'yarn'");
        assertRefused("qwen2", c -> c.put("partial_rotary_factor", 0.5), "partial_rotary");
    }

    @Test
    void extentsThatContradictTheWeightsOrTheKernelsAreRefused() {
        assertRefused("qwen2", c -> c.put("vocab_size", 385), "must be [64, 385]");
        assertRefused("qwen2", c -> c.put("num_hidden_layers", 3), "'model.layers.2.");
        assertRefused("qwen2", c -> c.put("num_hidden_layers", 1), "'model.layers.1.");
        assertRefused("qwen2", c -> c.put("num_attention_heads", 0), "must be positive");
        assertRefused("qwen2", c -> c.put("num_attention_heads", 3), "or 'head_dim'");
        assertRefused("qwen2", c -> c.put("hidden_size", "64"), "must be an integer");
        assertRefused("qwen2", c -> c.put("hidden_size", 1L << 40), "at most 2147483647");
        assertRefused("qwen3", c -> c.put("num_key_value_heads", 3), "4 heads with 3 KV heads");
        assertRefused("qwen3", c -> c.put("head_dim", 48), "head dimension 48");
        assertRefused("qwen2", c -> c.put("rms_norm_eps", -1), "a positive finite number");
        assertRefused("qwen2", c -> c.remove("hidden_size"), "'hidden_size': it is missing");
    }

    @Test
    void aModelHasAllTensorsOfItsArchitectureAndNoOther() {
        Consumer<ObjectNode> qwen3 = c -> c.putArray("architectures").add("Qwen3ForCausalLM");
        assertRefused("qwen2", qwen3, "'model.layers.0.self_attn.q_norm.weight'");
        Consumer<ObjectNode> llama = c -> c.putArray("architectures").add("LlamaForCausalLM");
        assertRefused("qwen2", llama, "not part of a plain llama model");
        assertRefused("qwen2", c -> c.put("tie_word_embeddings", false), "'lm_head.weight'");
    }

    @Test
    void aTiedModelUsesItsEmbeddingEvenIfTheFolderHasAnotherHead() {
        Path folder = copy("qwen3");
        TestFolders.change(folder.resolve("config.json"), c -> c.put("tie_word_embeddings", true));
        try (ModelFiles untied = ModelFiles.open(TestFolders.folder("qwen3"));
                ModelFiles tied = ModelFiles.open(folder);
                LlamaModel untiedModel = untied.openModel(1);
                LlamaModel tiedModel = tied.openModel(1)) {
            assertThat(untiedModel.weightBytes(0) - tiedModel.weightBytes(0))
                    .isEqualTo(384 * 64 * Float.BYTES);
        }
    }

    @Test
    void indexesThatContradictTheFilesAreRefused() throws IOException {
        String first = "model-00001-of-00002.safetensors";
        assertIndexRefused(
                map -> map.put("lm_head.weight", "../secret.safetensors"), "no name of a file");
        assertIndexRefused(
                map -> map.put("lm_head.weight", "/etc/x.safetensors"), "no name of a file");
        assertIndexRefused(map -> map.put("lm_head.weight", "a.bin"), "no name of a file");
        assertIndexRefused(map -> map.put("model.norm.weight", first), "elsewhere than in");
        assertIndexRefused(map -> map.remove("model.norm.weight"), "elsewhere than in");
        assertIndexRefused(map -> map.put("more", first), "'more', which is in no file");
        Path folder = copy("llama");
        Files.delete(folder.resolve(first));
        assertRefused(folder, first);
        Files.delete(folder.resolve("model.safetensors.index.json"));
        assertRefused(folder, "it has neither model.safetensors nor");
    }

    private void assertIndexRefused(Consumer<ObjectNode> change, String message) {
        Path folder = TestFolders.copy("llama", directory.resolve("index-" + change.hashCode()));
        TestFolders.change(
                folder.resolve("model.safetensors.index.json"),
                index -> change.accept((ObjectNode) index.path("weight_map")));
        assertRefused(folder, message);
    }

    @Test
    void weightsThatChangedInTheFolderAreRefused() throws IOException {
        Path folder = copy("llama");
        Path shard = folder.resolve("model-00002-of-00002.safetensors");
        try (ModelFiles files = ModelFiles.open(folder);
                LlamaModel model = files.openModel(2);
                ModelMemory memory = new ModelMemory(model, 1, 8, KvType.F16)) {
            model.loadWeights(0, memory.weights());
            try (FileChannel channel = FileChannel.open(shard, StandardOpenOption.WRITE)) {
                long last = channel.size() - 1;
                channel.write(ByteBuffer.wrap(new byte[] {0x55}), last);
            }
            assertThatThrownBy(() -> model.loadWeights(0, memory.weights()))
                    .isInstanceOf(ModelException.class)
                    .hasMessageContaining("has changed since it was loaded first");
            try (FileChannel channel = FileChannel.open(shard, StandardOpenOption.WRITE)) {
                channel.truncate(4096);
            }
            assertThatThrownBy(() -> model.loadWeights(0, memory.weights()))
                    .isInstanceOf(ModelException.class)
                    .hasMessageContaining("shortened");
        }
    }
}
