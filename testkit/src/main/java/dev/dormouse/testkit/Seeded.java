package dev.dormouse.testkit;

import java.util.SplittableRandom;

/**
 * Property tests from one seed.
 *
 * <p>Each case gets its own generator; a failure names the seed that repeats it. {@code
 * -Ddormouse.seed=N} runs exactly that case.
 */
public final class Seeded {
    private Seeded() {}

    /** One case of a property. */
    @FunctionalInterface
    public interface Case {
        /** Runs the case; an exception or assertion error is a counterexample. */
        void run(SplittableRandom random) throws Exception;
    }

    /**
     * Runs {@code cases} cases, from fixed seeds, so that every run of the suite sees the same
     * ones.
     *
     * @throws AssertionError naming the seed of the first case that fails
     */
    public static void forAll(int cases, Case property) {
        Long replay = Long.getLong("dormouse.seed");
        if (replay != null) {
            runOne(replay, property);
            return;
        }
        for (long seed = 1; seed <= cases; seed++) {
            runOne(seed, property);
        }
    }

    private static void runOne(long seed, Case property) {
        try {
            property.run(new SplittableRandom(seed));
        } catch (Exception | AssertionError e) {
            throw new AssertionError(
                    "failed with -Ddormouse.seed=" + seed + ": " + e.getMessage(), e);
        }
    }
}
