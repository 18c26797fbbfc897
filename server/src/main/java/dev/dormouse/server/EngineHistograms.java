package dev.dormouse.server;

import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.Histogram;
import io.micrometer.core.instrument.Tags;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot.HistogramDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** The histograms that the engine fills, under vLLM's names. Thread-safe. */
final class EngineHistograms implements MultiCollector {
    private final Supplier<EngineStatistics> source;
    private final Labels labels;

    /** Shows what {@code source} has at each scrape. */
    EngineHistograms(Supplier<EngineStatistics> source, Tags tags) {
        this.source = source;
        Labels.Builder builder = Labels.builder();
        tags.forEach(tag -> builder.label(tag.getKey(), tag.getValue()));
        this.labels = builder.build();
    }

    @Override
    public MetricSnapshots collect() {
        EngineStatistics statistics = source.get();
        EngineStatistics.Transfers transfers = statistics.transferSizes();
        return MetricSnapshots.of(
                snapshot(
                        "vllm:nixl_xfer_time_seconds",
                        "Duration of KV transfers.",
                        List.of(point(transfers.seconds(), labels))),
                snapshot(
                        "vllm:nixl_post_time_seconds",
                        "Time to post KV transfers.",
                        List.of(point(transfers.postSeconds(), labels))),
                snapshot(
                        "vllm:nixl_bytes_transferred",
                        "Bytes per KV transfer.",
                        List.of(point(transfers.bytes(), labels))),
                snapshot(
                        "vllm:nixl_num_descriptors",
                        "Descriptors per KV transfer.",
                        List.of(point(transfers.descriptors(), labels))),
                snapshot(
                        "vllm:sleep_mode_operation_duration_seconds",
                        "Duration of transitions that changed something.",
                        transitions(statistics.transitionSeconds())));
    }

    private List<HistogramDataPointSnapshot> transitions(Map<String, Histogram> byOperation) {
        List<HistogramDataPointSnapshot> points = new ArrayList<>();
        byOperation.forEach(
                (operation, histogram) ->
                        points.add(point(histogram, labels.add("operation", operation))));
        return points;
    }

    private static HistogramSnapshot snapshot(
            String name, String help, List<HistogramDataPointSnapshot> points) {
        HistogramSnapshot.Builder builder = HistogramSnapshot.builder().name(name).help(help);
        points.forEach(builder::dataPoint);
        return builder.build();
    }

    private static HistogramDataPointSnapshot point(Histogram histogram, Labels labels) {
        ClassicHistogramBuckets.Builder buckets = ClassicHistogramBuckets.builder();
        for (int i = 0; i < histogram.counts().size(); i++) {
            boolean last = i == histogram.upperBounds().size();
            buckets.bucket(
                    last ? Double.POSITIVE_INFINITY : histogram.upperBounds().get(i),
                    histogram.counts().get(i));
        }
        return HistogramDataPointSnapshot.builder()
                .classicHistogramBuckets(buckets.build())
                .sum(histogram.sum())
                .labels(labels)
                .build();
    }
}
