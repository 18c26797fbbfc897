package dev.dormouse.connector;

import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Which requests this engine holds for readers in the registration that it serves, until when at
 * least, and for whom. Written by the engine's thread, read by the side channel's: an answer is
 * true of one moment, so that a hold is never told with another registration's epoch.
 *
 * <p>A request is held for one reader, the first that claims it: when that one is done the blocks
 * go to another prompt, while somebody else, to whom a router has sent the same parameters, could
 * still be reading them.
 */
final class HoldBook {
    /**
     * One hold.
     *
     * @param claimNanos how long it is held once it is claimed, unless it ends before
     * @param reader who has claimed it
     * @param served whether it can be claimed: it is held in the registration that is served
     */
    private record Hold(long untilNanos, long claimNanos, @Nullable String reader, boolean served) {
        boolean isFor(String asking) {
            return served && asking.equals(reader);
        }

        Hold answered(String asking, long nowNanos) {
            if (!served || reader != null) {
                return this;
            }
            boolean shortened = untilNanos - nowNanos > claimNanos;
            return new Hold(
                    shortened ? nowNanos + claimNanos : untilNanos, claimNanos, asking, true);
        }

        Hold renewed(long newUntilNanos) {
            return untilNanos - newUntilNanos >= 0
                    ? this
                    : new Hold(newUntilNanos, claimNanos, reader, served);
        }

        Hold withdrawn() {
            return new Hold(untilNanos, claimNanos, reader, false);
        }
    }

    private final String instanceId;
    private final LongSupplier nanoClock;
    private final Map<String, Hold> holds = new HashMap<>();

    /** Requests that will be held if they end well, and who has claimed them already, or "". */
    private final Map<String, String> expected = new HashMap<>();

    private long epoch;

    /** Empty; {@code nanoClock} is the scheduler's. */
    HoldBook(String instanceId, LongSupplier nanoClock) {
        this.instanceId = instanceId;
        this.nanoClock = nanoClock;
    }

    /**
     * From now on, nothing can be claimed that was held before, nor is it said to be held; what
     * comes is held in {@code newEpoch}. Who has claimed what is remembered until the hold ends.
     */
    synchronized void begin(long newEpoch) {
        holds.replaceAll((_, hold) -> hold.withdrawn());
        expected.clear();
        epoch = newEpoch;
    }

    /** A request may be claimed from now on, although it has not ended. */
    synchronized void expect(String requestId) {
        expected.putIfAbsent(requestId, "");
    }

    synchronized void hold(String requestId, long untilNanos) {
        hold(requestId, untilNanos, Long.MAX_VALUE);
    }

    /**
     * Holds a request that may wait for its reader longer than one needs to read it.
     *
     * @param claimNanos how long it stays at most once a reader has claimed it
     */
    synchronized void hold(String requestId, long untilNanos, long claimNanos) {
        String reader = expected.remove(requestId);
        holds.put(
                requestId,
                new Hold(
                        untilNanos,
                        claimNanos,
                        reader == null || reader.isEmpty() ? null : reader,
                        true));
    }

    /** A reader has renewed the hold; it never ends earlier than was said before. */
    synchronized void renew(String requestId, long untilNanos) {
        holds.computeIfPresent(requestId, (_, old) -> old.renewed(untilNanos));
    }

    synchronized void end(String requestId) {
        holds.remove(requestId);
        expected.remove(requestId);
    }

    /**
     * Ends a hold, unless a reader has claimed it and its time is not over.
     *
     * @return false if there is none that could be ended; from a true answer on nobody can claim it
     */
    synchronized boolean endUnclaimed(String requestId) {
        Hold hold = holds.get(requestId);
        if (hold == null
                || (hold.reader() != null && hold.untilNanos() - nanoClock.getAsLong() > 0)) {
            return false;
        }
        holds.remove(requestId);
        return true;
    }

    /** The answer to a claim: the blocks are held for its reader, will be, or not. */
    synchronized byte[] answer(HoldQuestion claim) {
        long nowNanos = nanoClock.getAsLong();
        Hold hold =
                holds.computeIfPresent(
                        claim.requestId(), (_, old) -> old.answered(claim.reader(), nowNanos));
        double seconds =
                hold == null || !hold.isFor(claim.reader())
                        ? -1
                        : Math.max(0, (hold.untilNanos() - nowNanos) / 1e9);
        String first =
                expected.computeIfPresent(
                        claim.requestId(),
                        (_, reader) -> reader.isEmpty() ? claim.reader() : reader);
        return HoldAnswer.encode(
                claim.requestId(), seconds, claim.reader().equals(first), epoch, instanceId);
    }
}
