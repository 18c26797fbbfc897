package dev.dormouse.nixl;

import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * Settings of one agent.
 *
 * @param name how peers call it; unique among all agents that meet
 * @param progressThread whether a NIXL thread drives the backends. Without it an agent costs
 *     nothing idle, but then connections, and transfers that the transport emulates, move only
 *     while someone polls a transfer or drains notifications on <em>both</em> sides
 * @param progressDelay how long that thread sleeps when nothing wakes it; at least 1 ms, since NIXL
 *     polls in milliseconds and 0 makes it spin (0.9 of a core, measured with 1.5.1)
 * @param threadSync locks inside NIXL
 * @param telemetry whether transfers are measured, see {@link Transfer#telemetry()}
 * @param maxMetadataBytes larger metadata of a peer is refused
 * @param maxNotificationBytes larger messages are refused when sent and dropped when received
 */
public record NixlAgentConfig(
        String name,
        boolean progressThread,
        Duration progressDelay,
        ThreadSync threadSync,
        boolean telemetry,
        int maxMetadataBytes,
        int maxNotificationBytes) {
    static final int MAX_NAME_BYTES = 255;

    private static final Duration MIN_PROGRESS_DELAY = Duration.ofMillis(1);
    private static final Duration MAX_PROGRESS_DELAY = Duration.ofMinutes(1);

    /** Checks everything. */
    public NixlAgentConfig {
        checkName(name);
        if (progressDelay.compareTo(MIN_PROGRESS_DELAY) < 0
                || progressDelay.compareTo(MAX_PROGRESS_DELAY) > 0) {
            throw new IllegalArgumentException(
                    "agent config refused: progressDelay=%s is not within %s and %s"
                            .formatted(progressDelay, MIN_PROGRESS_DELAY, MAX_PROGRESS_DELAY));
        }
        if (maxMetadataBytes <= 0 || maxNotificationBytes <= 0) {
            throw new IllegalArgumentException(
                    "agent config refused: maxMetadataBytes=%d and maxNotificationBytes=%d must be positive"
                            .formatted(maxMetadataBytes, maxNotificationBytes));
        }
    }

    /** Defaults: progress thread with a delay of 1 ms, no locks in NIXL, no telemetry. */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    private static void checkName(String name) {
        int bytes = name.getBytes(StandardCharsets.UTF_8).length;
        if (name.isBlank()
                || name.chars().anyMatch(Character::isISOControl)
                || bytes > MAX_NAME_BYTES) {
            throw new IllegalArgumentException(
                    "agent config refused: name '%s' must be 1 to %d bytes, not blank, without control characters"
                            .formatted(name, MAX_NAME_BYTES));
        }
    }

    /** Collects the settings; {@link #build()} checks them. */
    public static final class Builder {
        private final String name;
        private boolean progressThread = true;
        private Duration progressDelay = MIN_PROGRESS_DELAY;
        private ThreadSync threadSync = ThreadSync.NONE;
        private boolean telemetry;
        private int maxMetadataBytes = 16 << 20;
        private int maxNotificationBytes = 1 << 20;

        private Builder(String name) {
            this.name = name;
        }

        /** See {@link NixlAgentConfig#progressThread()}. */
        public Builder progressThread(boolean on) {
            this.progressThread = on;
            return this;
        }

        /** See {@link NixlAgentConfig#progressDelay()}. */
        public Builder progressDelay(Duration delay) {
            this.progressDelay = delay;
            return this;
        }

        /** See {@link NixlAgentConfig#threadSync()}. */
        public Builder threadSync(ThreadSync sync) {
            this.threadSync = sync;
            return this;
        }

        /** See {@link NixlAgentConfig#telemetry()}. */
        public Builder telemetry(boolean on) {
            this.telemetry = on;
            return this;
        }

        /** See {@link NixlAgentConfig#maxMetadataBytes()}. */
        public Builder maxMetadataBytes(int bytes) {
            this.maxMetadataBytes = bytes;
            return this;
        }

        /** See {@link NixlAgentConfig#maxNotificationBytes()}. */
        public Builder maxNotificationBytes(int bytes) {
            this.maxNotificationBytes = bytes;
            return this;
        }

        /** The checked settings. */
        public NixlAgentConfig build() {
            return new NixlAgentConfig(
                    name,
                    progressThread,
                    progressDelay,
                    threadSync,
                    telemetry,
                    maxMetadataBytes,
                    maxNotificationBytes);
        }
    }
}
