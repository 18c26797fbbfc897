package dev.dormouse.simulation;

import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.testkit.ModelCounts;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Waits, in the world's time, for what must come by itself. */
final class Calm {
    /** After it whatever has been begun must have ended: the longest drain and every lease. */
    private static final Duration PATIENCE = Duration.ofMinutes(30);

    private static final Duration LONGEST_JUMP = Duration.ofMillis(500);

    private final World world;

    Calm(World world) {
        this.world = world;
    }

    /**
     * Lets time pass until it is so.
     *
     * @throws Violation if it never is
     */
    void settle(String what, BooleanSupplier done) {
        long deadlineNanos = world.clock().nanoTime() + PATIENCE.toNanos();
        Duration jump = Duration.ofMillis(1);
        while (!done.getAsBoolean()) {
            jump = world.round() ? Duration.ofMillis(1) : jump.multipliedBy(2);
            if (jump.compareTo(LONGEST_JUMP) > 0) {
                jump = LONGEST_JUMP;
            }
            world.clock().advance(jump);
            if (world.clock().nanoTime() - deadlineNanos > 0) {
                throw new Violation("never: " + what + " within " + PATIENCE + "; " + describe());
            }
        }
        world.check();
        world.log().add(what);
    }

    /** Nothing is under way at an engine, and all its blocks are free. */
    static boolean isIdle(Place place) {
        EngineProcess process = place.process();
        if (process == null || place.pendingTransitions() > 0) {
            return false;
        }
        EngineStatistics statistics = process.statistics();
        return statistics.running() == 0
                && statistics.waiting() == 0
                && statistics.waitingForRemoteKv() == 0
                && statistics.heldForRemote() == 0
                && statistics.kvBlocksFree() == statistics.kvBlocks()
                && process.transports().stream().allMatch(t -> t.counts().transfers() == 0);
    }

    private String describe() {
        return "open="
                + world.router().open().stream().map(carrier -> carrier.request().id()).toList()
                + world.places().stream()
                        .map(
                                place ->
                                        place.process() == null
                                                ? place + " is down"
                                                : describe(place.process())
                                                        + " transitions="
                                                        + place.pendingTransitions())
                        .collect(Collectors.joining("; ", " ", ""));
    }

    static String describe(EngineProcess process) {
        EngineStatistics statistics = process.statistics();
        Supplier<List<ModelCounts>> counts =
                () -> process.transports().stream().map(t -> t.counts()).toList();
        return "%s %s running=%d waiting=%d receiving=%d held=%d free=%d/%d %s"
                .formatted(
                        process,
                        process.state().phase(),
                        statistics.running(),
                        statistics.waiting(),
                        statistics.waitingForRemoteKv(),
                        statistics.heldForRemote(),
                        statistics.kvBlocksFree(),
                        statistics.kvBlocks(),
                        counts.get());
    }
}
