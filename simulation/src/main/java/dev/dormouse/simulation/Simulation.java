package dev.dormouse.simulation;

import java.util.SplittableRandom;

/**
 * Runs worlds: the production code of connector, engine and router, under schedules, faults and
 * sleeps that one seed decides. A seed's world always lives the same life.
 */
public final class Simulation {
    private Simulation() {}

    /**
     * What a world has lived through without breaking a rule.
     *
     * @param seed its seed
     * @param events events in its log
     * @param hash of its log
     * @param coverage what happened how often
     */
    public record Report(long seed, long events, long hash, Coverage coverage) {}

    /**
     * What happened how often.
     *
     * @param answered requests with the right answer
     * @param refused requests with an explicit error
     * @param remoteTokens prompt tokens whose KV was read from another engine
     * @param turnTokens those of them that prefill engines read back for a next turn
     * @param firstTokens first tokens that were taken from the engine that computed the prompt
     * @param handshakes handshakes that succeeded
     * @param failedHandshakes handshakes that failed
     * @param failedReads reads that failed or were refused
     * @param expiredHolds prompts that nobody read in time
     * @param revokedHolds prompts that were taken back before a sleep
     * @param revokedMappings mappings of shared pages that were taken back before a sleep
     * @param preemptions sequences that lost their blocks
     * @param prefixHits prompt tokens found in an engine's own cache
     * @param transitions transitions that changed an engine
     * @param deaths processes that ended
     */
    public record Coverage(
            long answered,
            long refused,
            long remoteTokens,
            long turnTokens,
            long firstTokens,
            long handshakes,
            long failedHandshakes,
            long failedReads,
            long expiredHolds,
            long revokedHolds,
            long revokedMappings,
            long preemptions,
            long prefixHits,
            long transitions,
            long deaths) {
        /** Nothing happened. */
        public static final Coverage NONE =
                new Coverage(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

        /** The sum of two. */
        public Coverage plus(Coverage other) {
            return new Coverage(
                    answered + other.answered,
                    refused + other.refused,
                    remoteTokens + other.remoteTokens,
                    turnTokens + other.turnTokens,
                    firstTokens + other.firstTokens,
                    handshakes + other.handshakes,
                    failedHandshakes + other.failedHandshakes,
                    failedReads + other.failedReads,
                    expiredHolds + other.expiredHolds,
                    revokedHolds + other.revokedHolds,
                    revokedMappings + other.revokedMappings,
                    preemptions + other.preemptions,
                    prefixHits + other.prefixHits,
                    transitions + other.transitions,
                    deaths + other.deaths);
        }
    }

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
        Setting setting = tampering.setting(Setting.draw(random));
        World world = new World(setting, tampering, random.split());
        try {
            new History(setting, world, random.split()).live();
        } catch (RuntimeException | AssertionError e) {
            throw new SimulationFailure(seed, setting, world.log().last(), e);
        }
        return new Report(seed, world.log().count(), world.log().hash(), world.tally().coverage());
    }
}
