package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Reads {@link KvTransferConfig} from JSON. */
final class KvTransferConfigReader {
    /** The only ones that are proven. */
    static final List<String> BACKENDS = List.of("UCX");

    private static final List<String> CONNECTORS =
            List.of(SleepSupport.NIXL, SleepSupport.PULL, SleepSupport.PUSH, SleepSupport.MULTI);
    private static final String CONNECTOR = "kv_connector";
    private static final String EXTRA = "kv_connector_extra_config";
    private static final String FAILURE_POLICY = "kv_load_failure_policy";
    private static final String BIDIRECTIONAL = "bidirectional_kv_xfer";
    private static final String DECODER_TTL = "decoder_kv_blocks_ttl";
    private static final String RECOMPUTE_THRESHOLD = "kv_recompute_threshold";
    private static final long MAX_PUSH_SECONDS = 3_600;
    private static final long MAX_SECONDS = Duration.ofDays(365).toSeconds();

    private final JsonNode json;
    private final String connector;
    private KvTransferConfig.@Nullable Role role;
    private @Nullable String engineId;
    private @Nullable LoadFailurePolicy policy;
    private @Nullable Integer threads;
    private @Nullable Duration lease;
    private @Nullable Duration ttl;
    private boolean bidirectional;
    private @Nullable Duration decoderTtl;
    private @Nullable Integer recomputeThreshold;
    private @Nullable Duration pushTimeout;
    private @Nullable Boolean enforce;
    private List<String> peers = List.of();
    private List<Integer> ports = List.of();
    private @Nullable Integer maxBlocks;
    private @Nullable TransportChoice transport;
    private final Map<String, String> compatibility = new LinkedHashMap<>();
    private final List<KvTransferConfig> children = new ArrayList<>();
    private final List<String> warnings = new ArrayList<>();

    KvTransferConfigReader(JsonNode json) {
        if (!json.isObject()) {
            throw new ConnectorException(
                    "kv-transfer-config: must be a JSON object, but is " + json.getNodeType());
        }
        this.json = json;
        this.connector = json.has(CONNECTOR) ? connector(json.get(CONNECTOR)) : "";
    }

    KvTransferConfig read() {
        json.properties().forEach(entry -> top(entry.getKey(), entry.getValue()));
        if (connector.isEmpty() || role == null) {
            throw new ConnectorException(
                    "kv-transfer-config: "
                            + (connector.isEmpty() ? CONNECTOR : "kv_role")
                            + " is missing");
        }
        if (isMulti()) {
            requireOneHolder();
        }
        ReadBack readBack = readBack();
        if (pushTimeout == null && connector.equals(SleepSupport.PUSH)) { // as in vLLM
            pushTimeout = decoderTtl;
        }
        return new KvTransferConfig(
                connector,
                role,
                engineId,
                policy,
                threads,
                lease,
                ttl,
                readBack,
                pushTimeout,
                enforce,
                peers,
                ports,
                maxBlocks,
                transport,
                compatibility,
                children,
                warnings);
    }

    private boolean isMulti() {
        return connector.equals(SleepSupport.MULTI);
    }

    /** Two that hold the same request would write the same keys of its parameters. */
    private void requireOneHolder() {
        if (children.isEmpty()) {
            throw new ConnectorException(
                    "kv-transfer-config: connectors is missing in " + EXTRA + " of " + connector);
        }
        if (children.size() > 1 && children.stream().anyMatch(child -> child.readBack() != null)) {
            throw new ConnectorException(
                    "kv-transfer-config: "
                            + BIDIRECTIONAL
                            + " of one of "
                            + children.size()
                            + " connectors must be false: all of them would write the same"
                            + " kv_transfer_params");
        }
        if (role != KvTransferConfig.Role.CONSUMER && children.size() > 1) {
            throw new ConnectorException(
                    "kv-transfer-config: kv_role of a "
                            + connector
                            + " with "
                            + children.size()
                            + " connectors must be kv_consumer: all of them would write the same"
                            + " kv_transfer_params");
        }
        if (children.stream().anyMatch(child -> child.role() != role)) {
            throw new ConnectorException(
                    "kv-transfer-config: kv_role of one of connectors differs from that of the "
                            + connector
                            + "; an engine has one role");
        }
    }

    private @Nullable ReadBack readBack() {
        if (!bidirectional) {
            if (decoderTtl != null && !connector.equals(SleepSupport.PUSH)) {
                warnings.add(DECODER_TTL + " has no effect without " + BIDIRECTIONAL);
            }
            if (recomputeThreshold != null) {
                warnings.add(RECOMPUTE_THRESHOLD + " has no effect without " + BIDIRECTIONAL);
            }
            return null;
        }
        return new ReadBack(
                Objects.requireNonNullElse(decoderTtl, ReadBack.DEFAULT.holdDuration()),
                Objects.requireNonNullElse(
                        recomputeThreshold, ReadBack.DEFAULT.recomputeThreshold()));
    }

    private void top(String key, JsonNode value) {
        switch (key) {
            case CONNECTOR -> {} // read first: it says what the others mean
            case "kv_role" -> role = role(value);
            case "engine_id" -> engineId = value.isNull() ? null : text(key, value);
            case "kv_buffer_device" -> {
                if (!value.isNull() && !"cpu".equals(value.textValue())) {
                    throw wrong(key, value, "cpu: the KV cache is in host memory");
                }
            }
            case FAILURE_POLICY -> policy = policy(key, value);
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
        extra.properties()
                .forEach(
                        entry -> {
                            if (isMulti()) {
                                extraOfMulti(entry.getKey(), entry.getValue());
                            } else {
                                extra(entry.getKey(), entry.getValue());
                            }
                        });
    }

    private void extraOfMulti(String key, JsonNode value) {
        if (!key.equals("connectors")) {
            throw unknown(EXTRA + " of " + connector, key);
        }
        if (!value.isArray()) {
            throw wrong(key, value, "a list of configurations");
        }
        for (JsonNode child : value) {
            children.add(child(child));
        }
    }

    /** Role and engine id are the whole's, unless they are said. */
    private KvTransferConfig child(JsonNode said) {
        if (!(said instanceof ObjectNode object)) {
            throw wrong("connectors", said, "a list of configurations");
        }
        ObjectNode complete = object.deepCopy();
        for (String key : List.of("kv_role", "engine_id")) {
            if (!complete.has(key) && json.has(key)) {
                complete.set(key, json.get(key));
            }
        }
        KvTransferConfig child = new KvTransferConfigReader(complete).read();
        if (!child.children().isEmpty()) {
            throw wrong("connectors", said, "no " + SleepSupport.MULTI + " again");
        }
        if (object.has(FAILURE_POLICY)) {
            warnings.add(
                    FAILURE_POLICY + " of one of connectors has no effect: say it beside kv_role");
        }
        warnings.addAll(child.warnings());
        return child;
    }

    private void extra(String key, JsonNode value) {
        switch (key) {
            case "backends" -> {
                if (!texts(key, value).equals(BACKENDS)) {
                    throw wrong(key, value, "[\"UCX\"]: no other backend is proven here");
                }
            }
            case "num_threads" -> threads = (int) integer(key, value, 1, 1_024);
            case "kv_lease_duration" -> lease = Duration.ofSeconds(integer(key, value, 1, 86_400));
            case "engine_ttl" -> ttl = seconds(key, value);
            case "enforce_handshake_compat" -> enforce = flag(key, value);
            case BIDIRECTIONAL -> {
                bidirectional = flag(key, value);
                if (bidirectional && connector.equals(SleepSupport.PUSH)) {
                    throw wrong(key, value, "false: the push connector cannot read");
                }
            }
            case DECODER_TTL -> decoderTtl = Duration.ofSeconds(integer(key, value, 1, 86_400));
            case RECOMPUTE_THRESHOLD ->
                    recomputeThreshold = (int) integer(key, value, 0, Integer.MAX_VALUE);
            case "push_registration_timeout" -> {
                if (connector.equals(SleepSupport.PUSH)) {
                    pushTimeout = Duration.ofSeconds(integer(key, value, 1, MAX_PUSH_SECONDS));
                } else {
                    warnings.add(key + " has no effect on the pull connector");
                }
            }
            case "allowed_peers" -> peers = texts(key, value);
            case "allowed_peer_ports" -> ports = KvTransferConfig.ports(text(key, value));
            case "max_peer_blocks" -> maxBlocks = (int) integer(key, value, 1, Integer.MAX_VALUE);
            case "kv_transport" -> transport = transport(key, value);
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
        String name = text(CONNECTOR, value);
        if (!CONNECTORS.contains(name)) {
            throw wrong(CONNECTOR, value, "one of " + String.join(", ", CONNECTORS));
        }
        return name;
    }

    private KvTransferConfig.Role role(JsonNode value) {
        return switch (text("kv_role", value)) {
            case "kv_producer" -> KvTransferConfig.Role.PRODUCER;
            case "kv_consumer" -> KvTransferConfig.Role.CONSUMER;
            case "kv_both" -> {
                warnings.add(
                        "kv_both is deprecated in vLLM; say kv_producer or kv_consumer if the"
                                + " engine has one role");
                yield KvTransferConfig.Role.BOTH;
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

    private static TransportChoice transport(String key, JsonNode value) {
        return switch (text(key, value)) {
            case "auto" -> TransportChoice.AUTO;
            case "nixl" -> TransportChoice.NIXL;
            case "local" -> TransportChoice.LOCAL;
            default -> throw wrong(key, value, "auto, nixl or local");
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
