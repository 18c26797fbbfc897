package dev.dormouse.connector;

import java.time.Duration;

/**
 * Reads from decode engines, vLLM's {@code bidirectional_kv_xfer}: a decode engine holds a finished
 * request's KV, prompt and output, for the client's next turn, and the prefill engine that gets
 * this turn reads it back instead of computing it.
 *
 * @param holdDuration how long a decode engine holds a request, which nobody renews; vLLM's {@code
 *     decoder_kv_blocks_ttl}
 * @param recomputeThreshold fewer tokens than this are computed, not read; vLLM's {@code
 *     kv_recompute_threshold}
 */
public record ReadBack(Duration holdDuration, int recomputeThreshold) {
    private static final Duration MAX_HOLD = Duration.ofDays(1);

    /** vLLM's defaults. */
    public static final ReadBack DEFAULT = new ReadBack(Duration.ofMinutes(8), 64);

    /**
     * Checks ranges.
     *
     * @throws ConnectorException naming the value and its limit
     */
    public ReadBack {
        if (!holdDuration.isPositive() || holdDuration.compareTo(MAX_HOLD) > 0) {
            throw new ConnectorException(
                    "read back: holdDuration="
                            + holdDuration
                            + " is not positive and at most "
                            + MAX_HOLD);
        }
        if (recomputeThreshold < 0) {
            throw new ConnectorException(
                    "read back: recomputeThreshold=" + recomputeThreshold + " is below 0");
        }
    }
}
