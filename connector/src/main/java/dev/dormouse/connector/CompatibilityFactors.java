package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What two engines must have in common before they exchange KV: vLLM's twelve factors, in the
 * hash's terms. To pair with a vLLM engine, all of them must be what that engine says.
 *
 * @param vllmVersion version of vLLM whose protocol is spoken
 * @param connectorVersion version of its connector protocol
 * @param model the model's name or path as configured
 * @param dtype such as {@code torch.bfloat16}
 * @param kvHeads KV heads over all ranks
 * @param headSize elements of a head
 * @param layers hidden layers over all ranks
 * @param attentionBackend first attention backend's name
 * @param cacheDtype such as {@code auto}
 * @param hybridMemory whether the hybrid memory allocator is on
 * @param speculativeConfig factors of speculative decoding, or null
 * @param transferMode {@code pull} or {@code push}
 */
public record CompatibilityFactors(
        String vllmVersion,
        int connectorVersion,
        String model,
        String dtype,
        int kvHeads,
        int headSize,
        int layers,
        String attentionBackend,
        String cacheDtype,
        boolean hybridMemory,
        @Nullable Map<String, @Nullable Object> speculativeConfig,
        String transferMode) {
    /** The version of vLLM that this connector speaks with. */
    public static final String VLLM_VERSION = "0.33.0";

    /** The connector protocol of {@link #VLLM_VERSION}. */
    public static final int CONNECTOR_VERSION = 15;

    static final String PULL = "pull";
    static final String PUSH = "push";

    private static final List<String> REPLACEABLE =
            List.of(
                    "vllm_version",
                    "nixl_connector_version",
                    "model",
                    "dtype",
                    "attn_backend_name",
                    "cache_dtype",
                    "is_hma_enabled");

    /**
     * Factors of a plain attention model, the rest at vLLM's defaults: its version and protocol as
     * above, backend {@code FLASH_ATTN}, cache dtype {@code auto}, hybrid memory on, no
     * speculation, pull.
     */
    public static CompatibilityFactors of(
            String model, String dtype, int kvHeads, int headSize, int layers) {
        return new CompatibilityFactors(
                VLLM_VERSION,
                CONNECTOR_VERSION,
                model,
                dtype,
                kvHeads,
                headSize,
                layers,
                "FLASH_ATTN",
                "auto",
                true,
                null,
                PULL);
    }

    /** These factors of an engine whose holders write: transfer mode push. */
    public CompatibilityFactors pushed() {
        return new CompatibilityFactors(
                vllmVersion,
                connectorVersion,
                model,
                dtype,
                kvHeads,
                headSize,
                layers,
                attentionBackend,
                cacheDtype,
                hybridMemory,
                speculativeConfig,
                PUSH);
    }

    /** True if holders write, false if readers read. */
    boolean isPush() {
        return transferMode.equals(PUSH);
    }

    /**
     * These factors with others in their place, by the hash's names: what a vLLM engine says of
     * itself. What describes the memory itself (heads, layers, sizes) cannot be replaced, since a
     * peer would then read what is not there.
     *
     * @param replacements of {@code vllm_version}, {@code nixl_connector_version}, {@code model},
     *     {@code dtype}, {@code attn_backend_name}, {@code cache_dtype} and {@code is_hma_enabled}
     * @throws ConnectorException naming a key that is none of these, or a value that does not fit
     */
    public CompatibilityFactors with(Map<String, String> replacements) {
        for (String key : replacements.keySet()) {
            if (!REPLACEABLE.contains(key)) {
                throw new ConnectorException(
                        "compatibility factor "
                                + Excerpt.of(key)
                                + " is not one of "
                                + String.join(", ", REPLACEABLE));
            }
        }
        String version =
                replacements.getOrDefault(
                        "nixl_connector_version", Integer.toString(connectorVersion));
        String hybrid = replacements.getOrDefault("is_hma_enabled", Boolean.toString(hybridMemory));
        if (!version.matches("[0-9]{1,6}") || !hybrid.matches("true|false")) {
            throw new ConnectorException(
                    "compatibility factors: nixl_connector_version="
                            + Excerpt.of(version)
                            + " must be a number, is_hma_enabled="
                            + Excerpt.of(hybrid)
                            + " true or false");
        }
        return new CompatibilityFactors(
                replacements.getOrDefault("vllm_version", vllmVersion),
                Integer.parseInt(version),
                replacements.getOrDefault("model", model),
                replacements.getOrDefault("dtype", dtype),
                kvHeads,
                headSize,
                layers,
                replacements.getOrDefault("attn_backend_name", attentionBackend),
                replacements.getOrDefault("cache_dtype", cacheDtype),
                Boolean.parseBoolean(hybrid),
                speculativeConfig,
                transferMode);
    }

    /** The compatibility hash: 64 lower-case hex digits of SHA-256 over the factors' JSON. */
    public String hash() {
        Map<String, @Nullable Object> factors = new HashMap<>();
        factors.put("vllm_version", vllmVersion);
        factors.put("nixl_connector_version", connectorVersion);
        factors.put("model", model);
        factors.put("dtype", dtype);
        factors.put("num_kv_heads", kvHeads);
        factors.put("head_size", headSize);
        factors.put("num_hidden_layers", layers);
        factors.put("attn_backend_name", attentionBackend);
        factors.put("cache_dtype", cacheDtype);
        factors.put("is_hma_enabled", hybridMemory);
        factors.put("speculative_config", speculativeConfig);
        factors.put("transfer_mode", transferMode);
        try {
            MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
            return HexFormat.of()
                    .formatHex(sha256.digest(PythonJson.dumps(factors).getBytes(UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
