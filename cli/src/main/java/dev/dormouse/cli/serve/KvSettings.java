package dev.dormouse.cli.serve;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorException;
import dev.dormouse.connector.KvTransferConfig;
import dev.dormouse.connector.LoadFailurePolicy;
import dev.dormouse.connector.PeerPolicy;
import dev.dormouse.connector.TransportChoice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the command line says of KV transfer: {@code --kv-transfer-config}, and the options of their
 * own, which win.
 */
final class KvSettings {
    private final ServeOptions options;
    private final KvTransferConfig config;

    /** The connector's place among several, which is added to the port. */
    private final int place;

    private KvSettings(ServeOptions options, KvTransferConfig config, int place) {
        this.options = options;
        this.config = config;
        this.place = place;
    }

    /**
     * Reads the settings.
     *
     * @throws IllegalArgumentException naming the option and what is wrong with it
     */
    static KvSettings of(ServeOptions options) {
        if (options.kvTransferConfig == null) {
            return new KvSettings(options, KvTransferConfig.NONE, 0);
        }
        try {
            ObjectMapper mapper =
                    new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
            KvSettings settings =
                    new KvSettings(
                            options,
                            KvTransferConfig.parse(mapper.readTree(options.kvTransferConfig)),
                            0);
            settings.requireOneHolder();
            return settings;
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(
                    "--kv-transfer-config is not JSON: " + e.getOriginalMessage(), e);
        } catch (ConnectorException e) {
            throw new IllegalArgumentException("--" + e.getMessage(), e);
        }
    }

    /** The JSON is in order, but the option wins over it. */
    private void requireOneHolder() {
        if (config.children().size() > 1 && role() != ServeOptions.Role.decode) {
            throw new IllegalArgumentException(
                    "--role is "
                            + role()
                            + ", but must be decode with the "
                            + config.children().size()
                            + " connectors of --kv-transfer-config: only one connector can hold"
                            + " prompts");
        }
    }

    /** The settings of each connector: of this one, or of those that it consists of. */
    List<KvSettings> connectors() {
        List<KvSettings> all = new ArrayList<>();
        for (KvTransferConfig child : config.children()) {
            all.add(new KvSettings(options, child, all.size()));
        }
        return all.isEmpty() ? List.of(this) : all;
    }

    /** True if holders write, false if readers read. */
    boolean isPush() {
        return config.isPush();
    }

    /** Why the engine must not sleep, or null. */
    @Nullable String sleepRefusal() {
        return config.sleepRefusal();
    }

    /** Which leg the engine serves, or null if it works alone. */
    ServeOptions.@Nullable Role role() {
        if (options.role != null || config.role() == null) {
            return options.role;
        }
        return switch (config.role()) {
            case PRODUCER -> ServeOptions.Role.prefill;
            case CONSUMER -> ServeOptions.Role.decode;
            case BOTH -> ServeOptions.Role.both;
        };
    }

    /** Whether a prompt whose KV cannot be read is computed here. */
    boolean recomputesFailedLoads() {
        return options.loadFailurePolicy == null
                ? config.loadFailurePolicy() == LoadFailurePolicy.RECOMPUTE
                : options.loadFailurePolicy == ServeOptions.LoadFailurePolicy.recompute;
    }

    /** Which way KV takes. */
    TransportChoice transport() {
        return switch (options.kvTransport) {
            case auto -> TransportChoice.AUTO;
            case nixl -> TransportChoice.NIXL;
            case local -> TransportChoice.LOCAL;
            case null -> config.transport() == null ? TransportChoice.AUTO : config.transport();
        };
    }

    /** Parameters of NIXL's backend. */
    Map<String, String> backendParameters() {
        return config.threads() == null
                ? Map.of()
                : Map.of("num_threads", Integer.toString(config.threads()));
    }

    /** What was said and has no effect. */
    List<String> warnings() {
        return config.warnings();
    }

    /** The connector's settings for an engine with these factors. */
    ConnectorConfig.Builder connector(CompatibilityFactors factors, int blockTokens) {
        Map<String, String> replaced = new HashMap<>(config.compatibility());
        replaced.putAll(options.kvCompat);
        ConnectorConfig.Builder builder =
                ConnectorConfig.builder(
                                (isPush() ? factors.pushed() : factors).with(replaced), blockTokens)
                        .bindHost(options.sideChannelHost)
                        .sideChannelPort(
                                options.sideChannelPort == 0 ? 0 : options.sideChannelPort + place)
                        .dataParallelIndex(options.dataParallelIndex);
        config.applyTo(builder);
        if (options.advertisedHost != null) {
            builder.advertisedHost(options.advertisedHost);
        }
        if (options.engineId != null) {
            builder.engineId(options.engineId);
        }
        if (options.leaseSeconds != null) {
            builder.leaseDuration(Duration.ofSeconds(options.leaseSeconds));
        }
        return builder.peers(peers());
    }

    private PeerPolicy peers() {
        List<String> rules =
                options.kvAllowedPeers.isEmpty() ? config.allowedPeers() : options.kvAllowedPeers;
        List<Integer> ports =
                options.kvAllowedPeerPorts == null
                        ? config.allowedPeerPorts()
                        : KvTransferConfig.ports(options.kvAllowedPeerPorts);
        Integer maxBlocks =
                options.kvMaxPeerBlocks == null ? config.maxPeerBlocks() : options.kvMaxPeerBlocks;
        return PeerPolicy.of(rules, ports, maxBlocks);
    }
}
