package dev.dormouse.connector;

import java.time.Instant;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * What a connector takes from the machine around it, so that another world can stand in for it.
 *
 * @param nanoClock nanoseconds of a clock that never goes back; both halves of an engine's
 *     connector have the same
 * @param epochBase the epoch that counts as published before a process's first
 * @param opener opens the engine's side channel
 * @param dialer asks other engines' side channels, on {@code threads}
 * @param threads where other engines' answers are waited for
 * @param idle passes a moment, for a worker that waits
 */
public record Surroundings(
        LongSupplier nanoClock,
        long epochBase,
        SideChannel.Opener opener,
        SideChannel.Dialer dialer,
        HandshakeThreads threads,
        Runnable idle) {
    private static final long IDLE_NANOS = 200_000;

    /** The machine that this runs on. */
    static Surroundings ofMachine(SideChannelClient client, HandshakePool threads) {
        return new Surroundings(
                System::nanoTime,
                epochBase(Instant.now()),
                SideChannelListener::new,
                client,
                threads,
                () -> LockSupport.parkNanos(IDLE_NANOS));
    }

    /**
     * Where a process's epochs begin, so that they rise over its restarts also for readers that do
     * not know instance ids. Room for a million wakes a second, and exact in JSON's doubles.
     */
    static long epochBase(Instant start) {
        return Math.max(0, start.getEpochSecond()) << 20;
    }
}
