package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What vLLM's {@code --kv-transfer-config} says, a JSON object with vLLM's keys: the connector, its
 * role, and under {@code kv_connector_extra_config} the connector's own settings. What is absent is
 * null or empty. A key that neither vLLM's NIXL connector nor this product knows is an error; one
 * that has no effect here is a {@linkplain #warnings warning}.
 *
 * <p>This product's own keys under {@code kv_connector_extra_config}: {@code allowed_peers} (a list
 * of {@link PeerPolicy} rules), {@code allowed_peer_ports} ({@code "5600-5700"}), {@code
 * max_peer_blocks}, {@code kv_transport} ({@code auto}, {@code nixl} or {@code local}), and {@code
 * compat} (an object of {@linkplain CompatibilityFactors#with factors}).
 *
 * @param connector vLLM's name of it, such as {@link SleepSupport#PULL}
 * @param role which leg of a request the engine serves
 * @param engineId the engine's name
 * @param loadFailurePolicy what becomes of a request whose KV cannot be read
 * @param threads of the transport's backend
 * @param leaseDuration how long blocks are held for a silent reader
 * @param engineTtl how long an unused peer stays loaded
 * @param readBack how prefill engines read from decode engines; null if they do not
 * @param pushTimeout how long a request waits for a holder's write
 * @param enforceCompatibility whether a peer of another compatibility hash is refused
 * @param allowedPeers rules of the peer policy
 * @param allowedPeerPorts first and last side channel port of peers; empty for any
 * @param maxPeerBlocks most blocks of a peer's rank
 * @param transport which way KV takes
 * @param compatibility factors that differ from this engine's own
 * @param children of {@link SleepSupport#MULTI}, its connectors in order; otherwise empty
 * @param warnings settings that have no effect, each with the reason
 */
public record KvTransferConfig(
        String connector,
        @Nullable Role role,
        @Nullable String engineId,
        @Nullable LoadFailurePolicy loadFailurePolicy,
        @Nullable Integer threads,
        @Nullable Duration leaseDuration,
        @Nullable Duration engineTtl,
        @Nullable ReadBack readBack,
        @Nullable Duration pushTimeout,
        @Nullable Boolean enforceCompatibility,
        List<String> allowedPeers,
        List<Integer> allowedPeerPorts,
        @Nullable Integer maxPeerBlocks,
        @Nullable TransportChoice transport,
        Map<String, String> compatibility,
        List<KvTransferConfig> children,
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
                    SleepSupport.PULL,
                    null,
                    null,
                    null,
                    null,
                    null,
                    null,
                    null,
                    null,
                    null,
                    List.of(),
                    List.of(),
                    null,
                    null,
                    Map.of(),
                    List.of(),
                    List.of());

    /** Copies the collections. */
    public KvTransferConfig {
        allowedPeers = List.copyOf(allowedPeers);
        allowedPeerPorts = List.copyOf(allowedPeerPorts);
        compatibility = Map.copyOf(compatibility);
        children = List.copyOf(children);
        warnings = List.copyOf(warnings);
    }

    /**
     * Reads a configuration.
     *
     * @throws ConnectorException naming the key, its value and what it must be
     */
    public static KvTransferConfig parse(JsonNode json) {
        return new KvTransferConfigReader(json).read();
    }

    /** True if holders write, false if readers read. */
    public boolean isPush() {
        return connector.equals(SleepSupport.PUSH);
    }

    /** Why an engine with this connector must not sleep; null if it may. */
    public @Nullable String sleepRefusal() {
        return connector.equals(SleepSupport.MULTI)
                ? SleepSupport.refusalOfMulti(
                        children.stream().map(KvTransferConfig::connector).toList(),
                        children.stream().map(_ -> KvTransferConfigReader.BACKENDS).toList())
                : SleepSupport.refusal(connector, KvTransferConfigReader.BACKENDS);
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
        builder.readBack(readBack);
        if (pushTimeout != null) {
            builder.pushTimeout(pushTimeout);
        }
        if (enforceCompatibility != null) {
            builder.enforceCompatibility(enforceCompatibility);
        }
        builder.peers(PeerPolicy.of(allowedPeers, allowedPeerPorts, maxPeerBlocks));
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
