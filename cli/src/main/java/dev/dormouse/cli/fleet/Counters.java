package dev.dormouse.cli.fleet;

import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * An engine's counters at one moment.
 *
 * @param reads remote reads that succeeded
 * @param handshakes handshakes that succeeded
 * @param failedTransfers reads, handshakes and notifications that failed
 * @param computedPromptTokens prompt tokens whose KV the engine computed itself; a prompt whose KV
 *     was read counts none, although its last token is computed
 */
public record Counters(
        long reads, long handshakes, long failedTransfers, long computedPromptTokens) {
    private static final Pattern SAMPLE =
            Pattern.compile("^([a-z_:A-Z0-9]+)(?:\\{[^}]*})? ([-+.0-9eE]+)$", Pattern.MULTILINE);

    public static Counters of(Endpoint engine) {
        return parse(engine.get("/metrics"));
    }

    /** Reads Prometheus text; a counter's labels are summed over. */
    public static Counters parse(String text) {
        Map<String, Double> sums =
                SAMPLE.matcher(text)
                        .results()
                        .collect(
                                Collectors.groupingBy(
                                        sample -> sample.group(1),
                                        Collectors.summingDouble(
                                                sample -> Double.parseDouble(sample.group(2)))));
        return new Counters(
                value(sums, "vllm:nixl_xfer_time_seconds_count"),
                value(sums, "dormouse:nixl_handshakes_total"),
                value(sums, "vllm:nixl_num_failed_transfers_total"),
                value(sums, "dormouse:prompt_tokens_computed_total"));
    }

    public Counters minus(Counters earlier) {
        return new Counters(
                reads - earlier.reads,
                handshakes - earlier.handshakes,
                failedTransfers - earlier.failedTransfers,
                computedPromptTokens - earlier.computedPromptTokens);
    }

    private static long value(Map<String, Double> sums, String name) {
        Double value = sums.get(name);
        if (value == null) {
            throw new FleetException("the engine's metrics do not have " + name);
        }
        return value.longValue();
    }
}
