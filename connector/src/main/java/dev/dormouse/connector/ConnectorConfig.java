package dev.dormouse.connector;

import java.time.Duration;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Settings of one engine's connector, shared by its scheduler's half and all ranks.
 *
 * @param engineId the name that peers and routers use; unique among engines that run
 * @param instanceId this process start; a restarted engine has another one
 * @param bindHost interface of the side channel
 * @param advertisedHost host under which peers reach the side channel
 * @param sideChannelPort its port, 0 for any free one
 * @param tpSize tensor parallel ranks of this engine
 * @param blockTokens tokens per block
 * @param factors what peers must have in common with this engine
 * @param enforceCompatibility whether a peer of another compatibility hash is refused
 * @param peers which peers are talked to, and how much is believed of what they say
 * @param leaseDuration how long finished blocks are held for a reader that gives no sign of life
 * @param handshakeTimeout limit of one handshake
 * @param readTimeout limit of one read or write, from post to completion
 * @param pushTimeout how long a request waits for another engine's write
 * @param engineTtl how long an unused peer stays loaded; zero for ever
 * @param readBack how prefill engines read from decode engines; null if they do not
 * @param skipReregistration test only: release and restore keep the old registration and payload,
 *     the fault that this connector exists to avoid
 */
public record ConnectorConfig(
        String engineId,
        String instanceId,
        String bindHost,
        String advertisedHost,
        int sideChannelPort,
        int tpSize,
        int blockTokens,
        CompatibilityFactors factors,
        boolean enforceCompatibility,
        PeerPolicy peers,
        Duration leaseDuration,
        Duration handshakeTimeout,
        Duration readTimeout,
        Duration pushTimeout,
        Duration engineTtl,
        @Nullable ReadBack readBack,
        boolean skipReregistration) {
    /** The side channel's port in vLLM, {@code VLLM_NIXL_SIDE_CHANNEL_PORT}. */
    public static final int DEFAULT_PORT = 5600;

    private static final Duration MAX_LEASE = Duration.ofDays(1);
    private static final Duration MAX_TIMEOUT = Duration.ofHours(1);
    private static final Duration MAX_TTL = Duration.ofDays(365);

    /**
     * Checks ranges, and that the advertised host can be reached.
     *
     * @throws ConnectorException naming the value and its limit
     */
    public ConnectorConfig {
        require(!engineId.isBlank(), "the engine id is blank");
        require(!instanceId.isBlank(), "the instance id is blank");
        require(
                !SideChannelAddress.isWildcard(advertisedHost),
                "peers cannot reach the wildcard address '"
                        + advertisedHost
                        + "'; advertise one of this host's addresses");
        require(
                SideChannelAddress.isValid(advertisedHost, sideChannelPort),
                "side channel host "
                        + Excerpt.of(advertisedHost)
                        + " port "
                        + sideChannelPort
                        + " is not an address");
        require(tpSize >= 1 && tpSize <= 1_024, "tpSize=" + tpSize + " is not in 1..1024");
        require(
                RankMapping.isDealt(factors.kvHeads(), tpSize),
                factors.kvHeads() + " KV heads cannot be dealt evenly to tpSize=" + tpSize);
        require(
                SideChannelAddress.isValid(bindHost, sideChannelPort),
                "side channel host " + Excerpt.of(bindHost) + " is no name and no address");
        require(blockTokens >= 1, "blockTokens=" + blockTokens + " is below 1");
        requirePositive("leaseDuration", leaseDuration, MAX_LEASE);
        requirePositive("handshakeTimeout", handshakeTimeout, MAX_TIMEOUT);
        requirePositive("readTimeout", readTimeout, MAX_TIMEOUT);
        requirePositive("pushTimeout", pushTimeout, MAX_TIMEOUT);
        require(
                !engineTtl.isNegative() && engineTtl.compareTo(MAX_TTL) <= 0,
                "engineTtl=" + engineTtl + " is not between 0 and " + MAX_TTL);
        require(
                readBack == null || !factors.isPush(),
                "readBack is set, but the push connector cannot read");
    }

    /** How far a renewal extends a lease: two thirds of it. */
    Duration leaseExtension() {
        return leaseDuration.multipliedBy(2).dividedBy(3);
    }

    /** How long a request is held at most, however often it is renewed: 480 s at 30 s. */
    Duration holdLimit() {
        return leaseDuration.multipliedBy(16);
    }

    /** Longer than any hold of an engine with these settings. */
    Duration longestHold() {
        return readBack == null || readBack.holdDuration().compareTo(holdLimit()) < 0
                ? holdLimit()
                : readBack.holdDuration();
    }

    private static void requirePositive(String name, Duration value, Duration max) {
        require(
                value.isPositive() && value.compareTo(max) <= 0,
                name + "=" + value + " is not positive and at most " + max);
    }

    private static void require(boolean condition, String problem) {
        if (!condition) {
            throw new ConnectorException("connector configuration: " + problem);
        }
    }

    /** A builder with defaults for all but the two. */
    public static Builder builder(CompatibilityFactors factors, int blockTokens) {
        return new Builder(factors, blockTokens);
    }

    /** Collects settings; every one has a default except those given at the start. */
    public static final class Builder {
        private final CompatibilityFactors factors;
        private final int blockTokens;
        private String engineId = UUID.randomUUID().toString();
        private String instanceId = UUID.randomUUID().toString();
        private String bindHost = "localhost";
        private @Nullable String advertisedHost;
        private int sideChannelPort = DEFAULT_PORT;
        private int dataParallelIndex;
        private int tpSize = 1;
        private boolean enforceCompatibility = true;
        private PeerPolicy peers = PeerPolicy.ANY;
        private Duration leaseDuration = Duration.ofSeconds(30);
        private Duration handshakeTimeout = Duration.ofSeconds(5);
        private Duration readTimeout = Duration.ofMinutes(2);
        private Duration pushTimeout = Duration.ofMinutes(8);
        private Duration engineTtl = Duration.ofHours(1);
        private @Nullable ReadBack readBack;
        private boolean skipReregistration;

        private Builder(CompatibilityFactors factors, int blockTokens) {
            this.factors = factors;
            this.blockTokens = blockTokens;
        }

        /** Default: random. */
        public Builder engineId(String value) {
            engineId = value;
            return this;
        }

        /** Default: random, as it must be outside tests. */
        public Builder instanceId(String value) {
            instanceId = value;
            return this;
        }

        /** Default: {@code localhost}. */
        public Builder bindHost(String value) {
            bindHost = value;
            return this;
        }

        /** Default: the bind host, which must then not be a wildcard. */
        public Builder advertisedHost(String value) {
            advertisedHost = value;
            return this;
        }

        /** Default: {@link #DEFAULT_PORT}. */
        public Builder sideChannelPort(int value) {
            sideChannelPort = value;
            return this;
        }

        /**
         * The engine's place among data parallel ones, which is added to the port, as in vLLM; a
         * free port is any free port. Default: 0.
         */
        public Builder dataParallelIndex(int value) {
            require(value >= 0 && value <= 65_535, "dataParallelIndex=" + value + " is no index");
            dataParallelIndex = value;
            return this;
        }

        /** Default: 1. */
        public Builder tpSize(int value) {
            tpSize = value;
            return this;
        }

        /** Default: true. */
        public Builder enforceCompatibility(boolean value) {
            enforceCompatibility = value;
            return this;
        }

        /** Default: {@link PeerPolicy#ANY}. */
        public Builder peers(PeerPolicy value) {
            peers = value;
            return this;
        }

        /** Default: 30 s. */
        public Builder leaseDuration(Duration value) {
            leaseDuration = value;
            return this;
        }

        /** Default: 5 s. */
        public Builder handshakeTimeout(Duration value) {
            handshakeTimeout = value;
            return this;
        }

        /** Default: 2 min. */
        public Builder readTimeout(Duration value) {
            readTimeout = value;
            return this;
        }

        /** Default: 8 min, as in vLLM. */
        public Builder pushTimeout(Duration value) {
            pushTimeout = value;
            return this;
        }

        /** Default: 1 h. */
        public Builder engineTtl(Duration value) {
            engineTtl = value;
            return this;
        }

        /** Default: null. */
        public Builder readBack(@Nullable ReadBack value) {
            readBack = value;
            return this;
        }

        /** Test only, see {@link ConnectorConfig#skipReregistration}. Default: false. */
        public Builder skipReregistration(boolean value) {
            skipReregistration = value;
            return this;
        }

        /**
         * The settings.
         *
         * @throws ConnectorException if they do not fit together
         */
        public ConnectorConfig build() {
            return new ConnectorConfig(
                    engineId,
                    instanceId,
                    bindHost,
                    advertisedHost == null ? bindHost : advertisedHost,
                    sideChannelPort == 0 ? 0 : sideChannelPort + dataParallelIndex,
                    tpSize,
                    blockTokens,
                    factors,
                    enforceCompatibility,
                    peers,
                    leaseDuration,
                    handshakeTimeout,
                    readTimeout,
                    pushTimeout,
                    engineTtl,
                    readBack,
                    skipReregistration);
        }
    }
}
