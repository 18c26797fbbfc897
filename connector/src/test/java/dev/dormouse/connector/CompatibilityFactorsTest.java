package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Hashes computed by vLLM 0.33.0, and Python's way to write JSON. */
final class CompatibilityFactorsTest {
    private static final CompatibilityFactors OPT =
            CompatibilityFactors.of("facebook/opt-125m", "torch.float16", 12, 64, 12);

    @Test
    void thePlainHashIsVllms() {
        assertThat(OPT.hash())
                .isEqualTo("c9b4c7d0cc763c97eacf257b47b6aff44ece9bcac527ed6a27f01de3745fda6e");
    }

    @Test
    void aHashWithSpeculationIsVllms() {
        Map<String, @Nullable Object> speculation = new HashMap<>();
        speculation.put("method", "eagle3");
        speculation.put("model", "d");
        speculation.put("revision", null);
        speculation.put("code_revision", null);
        speculation.put("parallel_drafting", false);
        speculation.put("kv_cache_dtype", "auto");
        speculation.put("auxiliary_layer_ids", List.of(2, 16, 29));
        CompatibilityFactors factors =
                new CompatibilityFactors(
                        "0.33.0",
                        15,
                        "m",
                        "torch.float16",
                        12,
                        64,
                        12,
                        "FLASH_ATTN",
                        "auto",
                        true,
                        speculation,
                        "push");
        assertThat(factors.hash())
                .isEqualTo("84b20fc2939f4645dfac47e4704fb82f23f2c342402f0aec960ad0f54f45f919");
    }

    @Test
    void aHashOfANameOutsideAsciiIsVllms() {
        assertThat(CompatibilityFactors.of("modèle/é", "torch.float16", 12, 64, 12).hash())
                .isEqualTo("a8bdd226da2755cacee7ef24536caa30cd08bc0a7b437190d316919f1a53221e");
    }

    @Test
    void eachFactorChangesTheHash() {
        assertThat(
                        Arrays.asList(
                                CompatibilityFactors.of("other", "torch.float16", 12, 64, 12),
                                CompatibilityFactors.of(
                                        "facebook/opt-125m", "torch.bfloat16", 12, 64, 12),
                                CompatibilityFactors.of(
                                        "facebook/opt-125m", "torch.float16", 13, 64, 12),
                                CompatibilityFactors.of(
                                        "facebook/opt-125m", "torch.float16", 12, 65, 12),
                                CompatibilityFactors.of(
                                        "facebook/opt-125m", "torch.float16", 12, 64, 13)))
                .extracting(CompatibilityFactors::hash)
                .doesNotContain(OPT.hash())
                .doesNotHaveDuplicates();
    }

    @Test
    void jsonIsWrittenAsPythonWritesIt() {
        Map<String, @Nullable Object> value = new HashMap<>();
        value.put("b", Arrays.asList(1, null, true, List.of(), Map.of()));
        value.put("a", "\"\\/\n\r\t\b\f\u0001\u007f~é\ud83d\ude00");
        value.put("Z", Long.MIN_VALUE);
        assertThat(PythonJson.dumps(value))
                .isEqualTo(
                        "{\"Z\": -9223372036854775808, \"a\": \"\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u007f~\\u00e9\\ud83d\\ude00\","
                                + " \"b\": [1, null, true, [], {}]}");
    }
}
