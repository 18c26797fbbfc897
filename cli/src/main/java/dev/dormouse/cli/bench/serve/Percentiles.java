package dev.dormouse.cli.bench.serve;

import java.util.stream.DoubleStream;

/**
 * Percentiles of some values, between two of them in proportion, as NumPy's. All 0 if there are no
 * values.
 */
public record Percentiles(double p50, double p90, double p99) {
    /** Of values in any order. */
    public static Percentiles of(DoubleStream values) {
        double[] sorted = values.sorted().toArray();
        return new Percentiles(at(sorted, 0.5), at(sorted, 0.9), at(sorted, 0.99));
    }

    /** The middle one. */
    public static double median(DoubleStream values) {
        return at(values.sorted().toArray(), 0.5);
    }

    private static double at(double[] sorted, double share) {
        if (sorted.length == 0) {
            return 0;
        }
        double place = share * (sorted.length - 1);
        int below = (int) place;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
    }
}
