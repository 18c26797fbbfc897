package dev.dormouse.cli.bench;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;

/**
 * By how much a process grows per cycle.
 *
 * <p>Each figure is the median of the slopes between all pairs of samples (Theil and Sen), which a
 * step at the start, or a garbage collection between two samples, does not move.
 *
 * @param engine whose growth it is
 * @param pssBytes bytes of memory per cycle
 * @param anonymousBytes bytes of heap, stacks and malloc per cycle
 * @param mappings lines of the memory map per cycle
 * @param descriptors file descriptors per cycle
 * @param threads threads per cycle
 */
record Growth(
        String engine,
        @JsonProperty("pss_bytes_per_cycle") double pssBytes,
        @JsonProperty("anonymous_bytes_per_cycle") double anonymousBytes,
        @JsonProperty("mappings_per_cycle") double mappings,
        @JsonProperty("descriptors_per_cycle") double descriptors,
        @JsonProperty("threads_per_cycle") double threads) {
    /** What a cycle may leave of {@link #pssBytes}. */
    static final double PSS_LIMIT_BYTES = 16 << 10;

    /** What a cycle may leave of all that is counted: nothing, but for what comes once. */
    static final double COUNT_LIMIT = 0.01;

    /**
     * @param everyCycles cycles between one sample and the next
     */
    static Growth of(String engine, List<Footprint> samples, int everyCycles) {
        return new Growth(
                engine,
                slope(samples, everyCycles, Footprint::pssBytes),
                slope(samples, everyCycles, Footprint::anonymousBytes),
                slope(samples, everyCycles, Footprint::mappings),
                slope(samples, everyCycles, Footprint::descriptors),
                slope(samples, everyCycles, Footprint::threads));
    }

    /** What exceeds its limit, in words. */
    List<String> excesses() {
        List<String> excesses = new ArrayList<>();
        addExcess("bytes of PSS", pssBytes, PSS_LIMIT_BYTES, excesses);
        addExcess("mappings", mappings, COUNT_LIMIT, excesses);
        addExcess("descriptors", descriptors, COUNT_LIMIT, excesses);
        addExcess("threads", threads, COUNT_LIMIT, excesses);
        return excesses;
    }

    private void addExcess(String what, double perCycle, double limit, List<String> excesses) {
        if (perCycle > limit) {
            excesses.add(
                    String.format(
                            Locale.ROOT,
                            "%s grows by %.3f %s per cycle, at most %.3f are allowed",
                            engine,
                            perCycle,
                            what,
                            limit));
        }
    }

    private static double slope(
            List<Footprint> samples, int everyCycles, ToLongFunction<Footprint> figure) {
        List<Double> slopes = new ArrayList<>();
        for (int i = 0; i < samples.size(); i++) {
            for (int j = i + 1; j < samples.size(); j++) {
                double difference =
                        figure.applyAsLong(samples.get(j)) - figure.applyAsLong(samples.get(i));
                slopes.add(difference / ((j - i) * everyCycles));
            }
        }
        slopes.sort(null);
        int size = slopes.size();
        return (slopes.get((size - 1) / 2) + slopes.get(size / 2)) / 2;
    }
}
