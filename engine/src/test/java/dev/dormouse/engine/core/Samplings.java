package dev.dormouse.engine.core;

import dev.dormouse.engine.SamplingParameters;
import java.util.List;
import java.util.Set;

/** Sampling parameters that tests need. */
final class Samplings {
    private Samplings() {}

    /** Greedy until one of the tokens comes. */
    static SamplingParameters until(int maxTokens, int stopToken) {
        return greedy(maxTokens, List.of(), Set.of(stopToken));
    }

    /** Greedy until the text comes. */
    static SamplingParameters until(int maxTokens, String stop) {
        return greedy(maxTokens, List.of(stop), Set.of());
    }

    /** Random, but the same for the same seed. */
    static SamplingParameters seeded(int maxTokens, long seed) {
        return new SamplingParameters(
                1.5, 0, 1, 0, seed, 1, 0, 0, maxTokens, 0, List.of(), Set.of(), false, 2);
    }

    private static SamplingParameters greedy(
            int maxTokens, List<String> stop, Set<Integer> stopTokens) {
        return new SamplingParameters(
                0, 0, 1, 0, null, 1, 0, 0, maxTokens, 0, stop, stopTokens, false, null);
    }
}
