package dev.dormouse.simulation;

import java.util.SplittableRandom;

/**
 * Runs worlds: the production code of connector and engine, under schedules, faults and sleeps that
 * one seed decides. A seed's world always lives the same life.
 */
public final class Simulation {
    private Simulation() {}

    /**
     * What a world has lived through without breaking a rule.
     *
     * @param seed its seed
     * @param events events in its log
     * @param hash of its log
     * @param answered requests with the right answer
     * @param refused requests with an explicit error
     * @param remoteTokens prompt tokens whose KV was read from another engine
     * @param handshakes handshakes that succeeded
     */
    public record Report(
            long seed,
            long events,
            long hash,
            long answered,
            long refused,
            long remoteTokens,
            long handshakes) {}

    /**
     * Runs the world of a seed.
     *
     * @throws SimulationFailure if the code has broken a rule
     */
    public static Report run(long seed) {
        return run(seed, Tampering.NONE);
    }

    static Report run(long seed, Tampering tampering) {
        SplittableRandom random = new SplittableRandom(seed);
        Setting setting = Setting.draw(random);
        World world = new World(setting, tampering, random.split());
        try {
            new History(setting, world, random.split()).live();
        } catch (RuntimeException | AssertionError e) {
            throw new SimulationFailure(seed, setting, world.log().last(), e);
        }
        Tally tally = world.tally();
        return new Report(
                seed,
                world.log().count(),
                world.log().hash(),
                tally.answered,
                tally.refused,
                tally.remoteTokens,
                tally.handshakes);
    }
}
