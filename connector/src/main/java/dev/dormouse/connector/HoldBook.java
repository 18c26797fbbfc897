package dev.dormouse.connector;

import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Which requests this engine holds for readers in the registration that it serves, and until when
 * at least. Written by the engine's thread, read by the side channel's: an answer is true of one
 * moment, so that a hold is never told with another registration's epoch.
 */
final class HoldBook {
    private final String instanceId;
    private final LongSupplier nanoClock;
    private final Map<String, Long> deadlineNanos = new HashMap<>();
    private long epoch;

    /** Empty; {@code nanoClock} is the scheduler's. */
    HoldBook(String instanceId, LongSupplier nanoClock) {
        this.instanceId = instanceId;
        this.nanoClock = nanoClock;
    }

    /** From now on, nothing is held that was held before; what comes is held in {@code epoch}. */
    synchronized void begin(long newEpoch) {
        deadlineNanos.clear();
        epoch = newEpoch;
    }

    synchronized void hold(String requestId, long untilNanos) {
        deadlineNanos.put(requestId, untilNanos);
    }

    /** A reader has renewed the hold; it never ends earlier than was said before. */
    synchronized void renew(String requestId, long untilNanos) {
        deadlineNanos.computeIfPresent(
                requestId, (_, old) -> old - untilNanos >= 0 ? old : (Long) untilNanos);
    }

    synchronized void end(String requestId) {
        deadlineNanos.remove(requestId);
    }

    /** The answer to a question about a request. */
    synchronized byte[] answer(String requestId) {
        long held = epoch;
        Long until = deadlineNanos.get(requestId);
        double seconds = until == null ? -1 : Math.max(0, (until - nanoClock.getAsLong()) / 1e9);
        return HoldAnswer.encode(seconds, held, instanceId);
    }
}
