package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What vLLM's {@code --kv-transfer-config} says, a JSON object with vLLM's keys: the connector, its
 * role, and under {@code kv_connector_extra_config} the connector's own settings. What is absent is
 * null or empty. A key that neither vLLM's NIXL connector nor this product knows is an error; one
 * that has no effect here is a {@linkplain #warnings warning}.
 *
 * <p>This product's own keys under {@code kv_connector_extra_config}: {@code allowed_peers} (a list
 * of {@link PeerPolicy} rules), {@code allowed_peer_ports} ({@code "5600-5700"}), {@code
 * max_peer_blocks}, and {@code compat} (an object of {@linkplain CompatibilityFactors#with
 * factors}).
 *
 * @param role which leg of a request the engine serves
 * @param engineId the engine's name
 * @param loadFailurePolicy what becomes of a request whose KV cannot be read
 * @param threads of the transport's backend
 * @param leaseDuration how long blocks are held for a silent reader
 * @param engineTtl how long an unused peer stays loaded
 * @param enforceCompatibility whether a peer of another compatibility hash is refused
 * @param allowedPeers rules of the peer policy
 * @param allowedPeerPorts first and last side channel port of peers; empty for any
 * @param maxPeerBlocks most blocks of a peer's rank
 * @param compatibility factors that differ from this engine's own
 * @param warnings settings that have no effect, each with the reason
 */
public record KvTransferConfig(
        @Nullable Role role,
        @Nullable String engineId,
        @Nullable LoadFailurePolicy loadFailurePolicy,
        @Nullable Integer threads,
        @Nullable Duration leaseDuration,
        @Nullable Duration engineTtl,
        @Nullable Boolean enforceCompatibility,
        List<String> allowedPeers,
        List<Integer> allowedPeerPorts,
        @Nullable Integer maxPeerBlocks,
        Map<String, String> compatibility,
        List<String> warnings) {
    /** Of an engine, {@code kv_role}. */
    public enum Role {
        /** {@code kv_producer}: computes prompts for others. */
        PRODUCER,
        /** {@code kv_consumer}: reads prompts of others. */
        CONSUMER,
        /** {@code kv_both}: either, as each request asks. */
        BOTH
    }

    /** A configuration that says nothing. */
    public static final KvTransferConfig NONE =
            new KvTransferConfig(
                    null, null, null, null, null, null, null, List.of(), List.of(), null, Map.of(),
                    List.of());

    /** Copies the collections. */
    public KvTransferConfig {
        allowedPeers = List.copyOf(allowedPeers);
        allowedPeerPorts = List.copyOf(allowedPeerPorts);
        compatibility = Map.copyOf(compatibility);
        warnings = List.copyOf(warnings);
    }

    /**
     * Reads a configuration.
     *
     * @throws ConnectorException naming the key, its value and what it must be
     */
    public static KvTransferConfig parse(JsonNode json) {
        return new Fields().read(json);
    }

    /** Puts what is said here into {@code builder}. */
    public void applyTo(ConnectorConfig.Builder builder) {
        if (engineId != null) {
            builder.engineId(engineId);
        }
        if (leaseDuration != null) {
            builder.leaseDuration(leaseDuration);
        }
        if (engineTtl != null) {
            builder.engineTtl(engineTtl);
        }
        if (enforceCompatibility != null) {
            builder.enforceCompatibility(enforceCompatibility);
        }
        builder.peers(PeerPolicy.of(allowedPeers, allowedPeerPorts, maxPeerBlocks));
    }

    /** What was read so far. */
    private static final class Fields {
        private static final String EXTRA = "kv_connector_extra_config";
        private static final long MAX_SECONDS = Duration.ofDays(365).toSeconds();

        private @Nullable String connector;
        private @Nullable Role role;
        private @Nullable String engineId;
        private @Nullable LoadFailurePolicy policy;
        private @Nullable Integer threads;
        private @Nullable Duration lease;
        private @Nullable Duration ttl;
        private @Nullable Boolean enforce;
        private List<String> peers = List.of();
        private List<Integer> ports = List.of();
        private @Nullable Integer maxBlocks;
        private final Map<String, String> compatibility = new LinkedHashMap<>();
        private final List<String> warnings = new ArrayList<>();

        KvTransferConfig read(JsonNode json) {
            if (!json.isObject()) {
                throw new ConnectorException(
                        "kv-transfer-config: must be a JSON object, but is " + json.getNodeType());
            }
            json.properties().forEach(entry -> top(entry.getKey(), entry.getValue()));
            if (connector == null || role == null) {
                throw new ConnectorException(
                        "kv-transfer-config: "
                                + (connector == null ? "kv_connector" : "kv_role")
                                + " is missing");
            }
            return new KvTransferConfig(
                    role,
                    engineId,
                    policy,
                    threads,
                    lease,
                    ttl,
                    enforce,
                    peers,
                    ports,
                    maxBlocks,
                    compatibility,
                    warnings);
        }

        private void top(String key, JsonNode value) {
            switch (key) {
                case "kv_connector" -> connector = connector(value);
                case "kv_role" -> role = role(value);
                case "engine_id" -> engineId = value.isNull() ? null : text(key, value);
                case "kv_buffer_device" -> {
                    if (!value.isNull() && !"cpu".equals(value.textValue())) {
                        throw wrong(key, value, "cpu: the KV cache is in host memory");
                    }
                }
                case "kv_load_failure_policy" -> policy = policy(key, value);
                case "enable_permute_local_kv" -> {
                    if (flag(key, value)) {
                        warnings.add(key + " has no effect: the layout is LBHNC on both sides");
                    }
                }
                case "kv_buffer_size", "kv_rank", "kv_parallel_size", "kv_ip", "kv_port" ->
                        warnings.add(key + " has no effect on the NIXL connector");
                case EXTRA -> {
                    if (!value.isNull()) {
                        extras(value);
                    }
                }
                default -> throw unknown("kv-transfer-config", key);
            }
        }

        private void extras(JsonNode extra) {
            if (!extra.isObject()) {
                throw wrong(EXTRA, extra, "an object");
            }
            extra.properties().forEach(entry -> extra(entry.getKey(), entry.getValue()));
        }

        private void extra(String key, JsonNode value) {
            switch (key) {
                case "backends" -> {
                    if (!texts(key, value).equals(List.of("UCX"))) {
                        throw wrong(key, value, "[\"UCX\"]: no other backend is proven here");
                    }
                }
                case "num_threads" -> threads = (int) integer(key, value, 1, 1_024);
                case "kv_lease_duration" ->
                        lease = Duration.ofSeconds(integer(key, value, 1, 86_400));
                case "engine_ttl" -> ttl = seconds(key, value);
                case "enforce_handshake_compat" -> enforce = flag(key, value);
                case "bidirectional_kv_xfer" -> {
                    if (flag(key, value)) {
                        throw wrong(key, value, "false: reads from decode engines do not exist");
                    }
                }
                case "decoder_kv_blocks_ttl", "kv_recompute_threshold" ->
                        warnings.add(key + " has no effect without bidirectional_kv_xfer");
                case "push_registration_timeout" ->
                        warnings.add(key + " has no effect on the pull connector");
                case "allowed_peers" -> peers = texts(key, value);
                case "allowed_peer_ports" -> ports = ports(text(key, value));
                case "max_peer_blocks" ->
                        maxBlocks = (int) integer(key, value, 1, Integer.MAX_VALUE);
                case "compat" -> {
                    if (!value.isObject()) {
                        throw wrong(key, value, "an object of compatibility factors");
                    }
                    value.properties()
                            .forEach(
                                    factor ->
                                            compatibility.put(
                                                    factor.getKey(), factor.getValue().asText()));
                }
                default -> throw unknown(EXTRA, key);
            }
        }

        private static String connector(JsonNode value) {
            String name = text("kv_connector", value);
            if (!name.equals(SleepSupport.NIXL) && !name.equals(SleepSupport.PULL)) {
                throw wrong("kv_connector", value, SleepSupport.NIXL + " or " + SleepSupport.PULL);
            }
            return name;
        }

        private Role role(JsonNode value) {
            return switch (text("kv_role", value)) {
                case "kv_producer" -> Role.PRODUCER;
                case "kv_consumer" -> Role.CONSUMER;
                case "kv_both" -> {
                    warnings.add(
                            "kv_both is deprecated in vLLM; say kv_producer or kv_consumer if the"
                                    + " engine has one role");
                    yield Role.BOTH;
                }
                default -> throw wrong("kv_role", value, "kv_producer, kv_consumer or kv_both");
            };
        }

        private static LoadFailurePolicy policy(String key, JsonNode value) {
            return switch (text(key, value)) {
                case "fail" -> LoadFailurePolicy.FAIL;
                case "recompute" -> LoadFailurePolicy.RECOMPUTE;
                default -> throw wrong(key, value, "fail or recompute");
            };
        }

        private static String text(String key, JsonNode value) {
            if (!value.isTextual() || value.textValue().isBlank()) {
                throw wrong(key, value, "a string");
            }
            return value.textValue();
        }

        private static List<String> texts(String key, JsonNode value) {
            if (!value.isArray()) {
                throw wrong(key, value, "a list of strings");
            }
            List<String> texts = new ArrayList<>();
            value.forEach(element -> texts.add(text(key, element)));
            return texts;
        }

        private static boolean flag(String key, JsonNode value) {
            if (!value.isBoolean()) {
                throw wrong(key, value, "true or false");
            }
            return value.booleanValue();
        }

        private static long integer(String key, JsonNode value, long min, long max) {
            if (!value.isIntegralNumber()
                    || !value.canConvertToLong()
                    || value.longValue() < min
                    || value.longValue() > max) {
                throw wrong(key, value, "an integer between " + min + " and " + max);
            }
            return value.longValue();
        }

        /** Zero or less switches off, as in vLLM. */
        private static Duration seconds(String key, JsonNode value) {
            if (!value.isNumber() || !(Math.abs(value.doubleValue()) <= MAX_SECONDS)) {
                throw wrong(key, value, "seconds, at most " + MAX_SECONDS);
            }
            return Duration.ofMillis(Math.round(1_000 * Math.max(0, value.doubleValue())));
        }

        private static ConnectorException wrong(String key, JsonNode value, String must) {
            return new ConnectorException(
                    "kv-transfer-config: "
                            + key
                            + " is "
                            + Excerpt.of(Objects.toString(value))
                            + ", but must be "
                            + must);
        }

        private static ConnectorException unknown(String where, String key) {
            return new ConnectorException(
                    "kv-transfer-config: unknown key " + Excerpt.of(key) + " in " + where);
        }
    }

    /**
     * Reads a range of ports, such as {@code 5600-5700} or {@code 5600}.
     *
     * @throws ConnectorException if it is none
     */
    public static List<Integer> ports(String range) {
        if (!range.matches("[0-9]{1,5}(-[0-9]{1,5})?")) {
            throw new ConnectorException(
                    "allowed peer ports: " + Excerpt.of(range) + " is no range such as 5600-5700");
        }
        int dash = range.indexOf('-');
        return dash < 0
                ? List.of(Integer.parseInt(range))
                : List.of(
                        Integer.parseInt(range.substring(0, dash)),
                        Integer.parseInt(range.substring(dash + 1)));
    }
}
