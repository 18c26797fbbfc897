package dev.dormouse.engine;

import java.util.List;

/**
 * How many values of which size came since the engine's start, as Prometheus counts them.
 *
 * @param upperBounds of the buckets, each inside its bucket; ascending
 * @param counts values in each bucket, not in those before; one more than bounds, for what is above
 *     all of them
 * @param sum of all values
 */
public record Histogram(List<Double> upperBounds, List<Long> counts, double sum) {
    /** Copies the lists. */
    public Histogram {
        upperBounds = List.copyOf(upperBounds);
        counts = List.copyOf(counts);
        if (counts.size() != upperBounds.size() + 1) {
            throw new IllegalArgumentException(
                    "histogram: "
                            + counts.size()
                            + " counts for "
                            + upperBounds.size()
                            + " bounds");
        }
    }

    /** How many values came. */
    public long count() {
        return counts.stream().mapToLong(Long::longValue).sum();
    }
}
