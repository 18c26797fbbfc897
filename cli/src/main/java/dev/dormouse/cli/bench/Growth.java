package dev.dormouse.cli.bench;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.ArrayList;
import java.util.List;
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
 * @param descriptors file descriptors per cycle
 */
record Growth(
        String engine,
        @JsonProperty("pss_bytes_per_cycle") double pssBytes,
        @JsonProperty("anonymous_bytes_per_cycle") double anonymousBytes,
        @JsonProperty("descriptors_per_cycle") double descriptors) {
    /**
     * @param everyCycles cycles between one sample and the next
     */
    static Growth of(String engine, List<Footprint> samples, int everyCycles) {
        return new Growth(
                engine,
                slope(samples, everyCycles, Footprint::pssBytes),
                slope(samples, everyCycles, Footprint::anonymousBytes),
                slope(samples, everyCycles, Footprint::descriptors));
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
