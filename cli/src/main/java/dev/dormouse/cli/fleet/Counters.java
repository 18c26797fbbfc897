package dev.dormouse.cli.fleet;

/**
 * An engine's counters at one moment.
 *
 * @param reads remote reads that succeeded
 * @param handshakes handshakes that succeeded
 * @param failedTransfers reads, handshakes and notifications that failed
 * @param computedPromptTokens prompt tokens whose KV the engine computed itself; a prompt whose KV
 *     was read counts none, even if its last token is computed again
 */
public record Counters(
        long reads, long handshakes, long failedTransfers, long computedPromptTokens) {
    public static Counters of(Endpoint engine) {
        return of(MetricSums.of(engine));
    }

    /** Reads Prometheus text; a counter's labels are summed over. */
    public static Counters parse(String text) {
        return of(MetricSums.parse(text));
    }

    private static Counters of(MetricSums sums) {
        return new Counters(
                (long) sums.value("vllm:nixl_xfer_time_seconds_count"),
                (long) sums.value("dormouse:nixl_handshakes_total"),
                (long) sums.value("vllm:nixl_num_failed_transfers_total"),
                (long) sums.value("dormouse:prompt_tokens_computed_total"));
    }

    public Counters minus(Counters earlier) {
        return new Counters(
                reads - earlier.reads,
                handshakes - earlier.handshakes,
                failedTransfers - earlier.failedTransfers,
                computedPromptTokens - earlier.computedPromptTokens);
    }
}
