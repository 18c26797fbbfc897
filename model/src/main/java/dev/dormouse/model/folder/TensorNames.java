package dev.dormouse.model.folder;

import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The names that Hugging Face's Llama and Qwen models give to what llama.cpp names otherwise. */
final class TensorNames {
    private static final Pattern LAYER = Pattern.compile("blk\\.(\\d+)\\.(\\w+)\\.(weight|bias)");

    private static final Map<String, String> WHOLE =
            Map.of(
                    "token_embd.weight", "model.embed_tokens.weight",
                    "output_norm.weight", "model.norm.weight",
                    "output.weight", "lm_head.weight");

    private static final Map<String, String> OF_A_LAYER =
            Map.ofEntries(
                    Map.entry("attn_norm", "input_layernorm"),
                    Map.entry("attn_q", "self_attn.q_proj"),
                    Map.entry("attn_k", "self_attn.k_proj"),
                    Map.entry("attn_v", "self_attn.v_proj"),
                    Map.entry("attn_q_norm", "self_attn.q_norm"),
                    Map.entry("attn_k_norm", "self_attn.k_norm"),
                    Map.entry("attn_output", "self_attn.o_proj"),
                    Map.entry("ffn_norm", "post_attention_layernorm"),
                    Map.entry("ffn_gate", "mlp.gate_proj"),
                    Map.entry("ffn_up", "mlp.up_proj"),
                    Map.entry("ffn_down", "mlp.down_proj"));

    private TensorNames() {}

    /** The name in a folder of what llama.cpp calls {@code name}, or empty when it has none. */
    static Optional<String> inFolder(String name) {
        @Nullable String whole = WHOLE.get(name);
        if (whole != null) {
            return Optional.of(whole);
        }
        Matcher layer = LAYER.matcher(name);
        if (!layer.matches()) {
            return Optional.empty();
        }
        return Optional.ofNullable(OF_A_LAYER.get(layer.group(2)))
                .map(part -> "model.layers." + layer.group(1) + "." + part + "." + layer.group(3));
    }

    /** Whether a tensor only repeats what the configuration says, as old Llama folders do. */
    static boolean isRedundant(String name) {
        return name.endsWith(".rotary_emb.inv_freq");
    }
}
