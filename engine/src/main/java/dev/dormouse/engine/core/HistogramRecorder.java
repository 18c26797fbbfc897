package dev.dormouse.engine.core;

import dev.dormouse.engine.Histogram;
import java.util.Arrays;

/** Fills a {@link Histogram}: of a value, its bucket's count and the sum remain. */
final class HistogramRecorder {
    private final double[] upperBounds;
    private final long[] counts;
    private double sum;

    /** An empty one; the bounds ascend. */
    HistogramRecorder(double... upperBounds) {
        this.upperBounds = upperBounds.clone();
        this.counts = new long[upperBounds.length + 1];
    }

    void record(double value) {
        int found = Arrays.binarySearch(upperBounds, value);
        counts[found < 0 ? -found - 1 : found]++;
        sum += value;
    }

    Histogram histogram() {
        return new Histogram(
                Arrays.stream(upperBounds).boxed().toList(),
                Arrays.stream(counts).boxed().toList(),
                sum);
    }
}
