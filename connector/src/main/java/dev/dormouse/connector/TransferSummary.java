package dev.dormouse.connector;

import dev.dormouse.connector.TransferStatistics.TransferSample;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * What an interval's transfers were like, in the words of vLLM's log line {@code KV Transfer
 * metrics} (vllm/distributed/kv_transfer/kv_connector/v1/nixl/stats.py, 0.33.0), so that tools that
 * read the one read the other.
 */
public final class TransferSummary {
    private static final double MILLIS = 1e3;
    private static final double MIB = 1 << 20;
    private static final double PERCENTILE = 0.9;

    private final Map<String, String> figures = new LinkedHashMap<>();

    private TransferSummary(TransferStatistics interval) {
        List<TransferSample> samples = interval.transfers();
        double[] transferMillis = sorted(samples, s -> s.durationSeconds() * MILLIS);
        double[] postMillis = sorted(samples, s -> s.postSeconds() * MILLIS);
        double megabytes = samples.stream().mapToDouble(s -> s.bytes() / MIB).sum();
        double seconds = samples.stream().mapToDouble(TransferSample::durationSeconds).sum();
        double descriptors = samples.stream().mapToDouble(TransferSample::descriptors).sum();
        figures.put("Num successful transfers", Integer.toString(samples.size()));
        put("Avg xfer time (ms)", mean(transferMillis), 3);
        put("P90 xfer time (ms)", percentile(transferMillis), 3);
        put("Avg post time (ms)", mean(postMillis), 3);
        put("P90 post time (ms)", percentile(postMillis), 3);
        put("Avg MB per transfer", ratio(megabytes, samples.size()), 3);
        put("Throughput (MB/s)", ratio(megabytes, seconds), 3);
        put("Avg number of descriptors", ratio(descriptors, samples.size()), 1);
        figures.put("Num failed transfers", Long.toString(interval.failures()));
        figures.put("Num KV expired reqs", Long.toString(interval.expiredRequests()));
        figures.put("Num notifs after expiry", Long.toString(interval.notificationsAfterExpiry()));
    }

    /** Sums an interval up. */
    public static TransferSummary of(TransferStatistics interval) {
        return new TransferSummary(interval);
    }

    private void put(String key, double value, int digits) {
        BigDecimal rounded =
                BigDecimal.valueOf(value)
                        .setScale(digits, RoundingMode.HALF_EVEN)
                        .stripTrailingZeros();
        figures.put(key, (rounded.scale() < 1 ? rounded.setScale(1) : rounded).toPlainString());
    }

    private static double[] sorted(
            List<TransferSample> samples, ToDoubleFunction<TransferSample> figure) {
        double[] values = samples.stream().mapToDouble(figure).toArray();
        Arrays.sort(values);
        return values;
    }

    private static double mean(double[] values) {
        return ratio(Arrays.stream(values).sum(), values.length);
    }

    /** Interpolated between neighbours, as numpy does by default. */
    private static double percentile(double[] sorted) {
        if (sorted.length == 0) {
            return 0;
        }
        double position = PERCENTILE * (sorted.length - 1);
        int below = (int) position;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
    }

    private static double ratio(double sum, double count) {
        return count == 0 ? 0 : sum / count;
    }

    /** The log line. */
    @Override
    public String toString() {
        return figures.entrySet().stream()
                .map(entry -> entry.getKey() + "=" + entry.getValue())
                .collect(Collectors.joining(", ", "KV Transfer metrics: ", ""));
    }
}
