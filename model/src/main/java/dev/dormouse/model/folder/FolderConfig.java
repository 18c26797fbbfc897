package dev.dormouse.model.folder;

import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.json.JsonFields;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Reads the extents of a model from {@code config.json}.
 *
 * <p>Where a field is missing, the defaults are those of transformers' configuration classes. What
 * would change the arithmetic and is not known is refused.
 */
final class FolderConfig {
    private static final Map<String, String> ARCHITECTURES =
            Map.of(
                    "LlamaForCausalLM", "llama",
                    "Qwen2ForCausalLM", "qwen2",
                    "Qwen3ForCausalLM", "qwen3");

    private static final double DEFAULT_ROPE_BASE = 10_000;
    private static final double DEFAULT_EPSILON = 1e-6;

    private final JsonFields config;

    FolderConfig(JsonFields config) {
        this.config = config;
    }

    /** Whether the embedding is the projection to logits, too. */
    boolean tiesEmbeddings() {
        return config.bool("tie_word_embeddings", false);
    }

    /** The ids after which generation is over. */
    List<Long> endTokens() {
        return config.naturals("eos_token_id");
    }

    ModelConfig read(Path folder) {
        String architecture = architecture();
        refuseUnknown(architecture);
        int width = config.positiveInt("hidden_size");
        int heads = config.positiveInt("num_attention_heads");
        int head = config.findPositiveInt("head_dim").orElse(headDimension(width, heads));
        Optional<JsonFields> parameters = config.findObject("rope_parameters");
        double base =
                parameters
                        .filter(p -> p.has("rope_theta"))
                        .orElse(config)
                        .positiveReal("rope_theta", DEFAULT_ROPE_BASE);
        Optional<JsonFields> scaling = parameters.or(() -> config.findObject("rope_scaling"));
        return new ModelConfig(
                String.valueOf(folder.toAbsolutePath().normalize().getFileName()),
                architecture,
                config.positiveInt("vocab_size"),
                width,
                config.positiveInt("num_hidden_layers"),
                heads,
                config.findPositiveInt("num_key_value_heads").orElse(heads),
                head,
                config.positiveInt("intermediate_size"),
                config.positiveInt("max_position_embeddings"),
                head,
                (float) base,
                (float) config.positiveReal("rms_norm_eps", DEFAULT_EPSILON),
                scaling.map(fields -> RopeScaling.divisors(fields, base, head)).orElse(List.of()));
    }

    private int headDimension(int width, int heads) {
        if (!config.has("head_dim") && width % heads != 0) {
            throw config.refused(
                    "'hidden_size' %d for %d heads".formatted(width, heads),
                    "a multiple, or 'head_dim'");
        }
        return width / heads;
    }

    private String architecture() {
        List<String> names = config.strings("architectures");
        if (names.size() != 1 || !ARCHITECTURES.containsKey(names.getFirst())) {
            throw config.refused(
                    "'architectures' " + names,
                    "one of " + ARCHITECTURES.keySet().stream().sorted().toList());
        }
        return ARCHITECTURES.get(names.getFirst());
    }

    private void refuseUnknown(String architecture) {
        String activation = config.findString("hidden_act").orElse("silu");
        if (!activation.equals("silu")) {
            throw config.refused("'hidden_act' '" + activation + "'", "'silu'");
        }
        if (!architecture.equals("qwen2")) {
            requireFalse("attention_bias");
        }
        requireFalse("mlp_bias");
        requireFalse("use_sliding_window");
        for (String type : config.strings("layer_types")) {
            if (!type.equals("full_attention")) {
                throw config.refused("a layer of type '" + type + "'", "'full_attention'");
            }
        }
        double rotated =
                config.findObject("rope_parameters")
                        .filter(p -> p.has("partial_rotary_factor"))
                        .orElse(config)
                        .positiveReal("partial_rotary_factor", 1);
        if (rotated != 1) {
            throw config.refused("a 'partial_rotary_factor'", "1");
        }
        Optional<JsonFields> quantised = config.findObject("quantization_config");
        if (quantised.isPresent()) {
            String method = quantised.get().findString("quant_method").orElse("without a name");
            throw config.refused("'quantization_config' " + method, "F32, F16 and BF16 weights");
        }
    }

    private void requireFalse(String field) {
        if (config.bool(field, false)) {
            throw config.refused("'" + field + "' true", "false");
        }
    }
}
