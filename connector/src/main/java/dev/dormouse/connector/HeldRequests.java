package dev.dormouse.connector;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * What the scheduler knows of the requests that it holds for readers: since when, and what the
 * ranks and the side channel are to be told of them.
 */
final class HeldRequests {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    /**
     * How long a request that was held for a next turn stays once it is claimed: six times the
     * margin that its reader leaves, as for the usual lease.
     */
    private static final Duration LEAST_CLAIM = Duration.ofSeconds(30);

    /** {@code lostNanos} is when a rank must have lost it, if it is held then. */
    private record Hold(long promisedNanos, long lostNanos) {}

    private final Duration lease;
    private final Duration limit;
    private final HoldBook book;
    private final Map<String, Hold> holds = new HashMap<>();
    private final Map<String, Double> newLeases = new HashMap<>();
    private final Set<String> endedEarly = new LinkedHashSet<>();

    /**
     * Nothing is held.
     *
     * @param book what the side channel answers from
     */
    HeldRequests(Duration lease, Duration limit, HoldBook book) {
        this.lease = lease;
        this.limit = limit;
        this.book = book;
    }

    /** The requests that are held. */
    Set<String> ids() {
        return new LinkedHashSet<>(holds.keySet());
    }

    int size() {
        return holds.size();
    }

    /** Holds a request from now on; returns the lease. */
    RemoteLease hold(String requestId, long nowNanos) {
        long lostNanos = nowNanos + limit.plus(lease).toNanos();
        holds.put(requestId, new Hold(lostNanos, lostNanos));
        RemoteLease given = lease(requestId, nowNanos, lease);
        book.hold(requestId, nowNanos + lease.toNanos());
        return given;
    }

    /**
     * Holds a request for the client's next turn from now on; returns the lease.
     *
     * @param promised for how long it must not {@linkplain #endEarly end early}, since there may be
     *     readers that do not claim what they read
     */
    RemoteLease holdForNextTurn(
            String requestId, long nowNanos, Duration duration, Duration promised) {
        holds.put(
                requestId,
                new Hold(
                        nowNanos + promised.toNanos(),
                        nowNanos + duration.plus(limit).plus(lease).toNanos()));
        RemoteLease given = lease(requestId, nowNanos, duration);
        Duration claim = lease.compareTo(LEAST_CLAIM) > 0 ? lease : LEAST_CLAIM;
        book.hold(requestId, nowNanos + duration.toNanos(), claim.toNanos());
        return given;
    }

    private RemoteLease lease(String requestId, long nowNanos, Duration length) {
        RemoteLease given =
                new RemoteLease((nowNanos + length.toNanos()) / 1e9, length.toNanos() / 1e9);
        newLeases.put(requestId, given.deadlineSeconds());
        return given;
    }

    /**
     * Ends a hold for a next turn before its time, if it was not promised and nobody has claimed
     * it.
     *
     * @return true if the ranks will report it as sent
     */
    boolean endEarly(String requestId, long nowNanos) {
        Hold hold = holds.get(requestId);
        if (endedEarly.contains(requestId)) {
            return true;
        }
        if (hold == null || nowNanos - hold.promisedNanos() < 0 || !book.endUnclaimed(requestId)) {
            return false;
        }
        return endedEarly.add(requestId);
    }

    /** Ends early what can be. */
    void endEarly(long nowNanos) {
        for (String id : holds.keySet()) {
            boolean _ = endEarly(id, nowNanos);
        }
    }

    /** What was ended before its time, or read unclaimed, and is still reported as held. */
    Set<String> endedEarly() {
        return endedEarly;
    }

    /** Takes what the ranks report of holds. */
    void onReport(WorkerReport report) {
        report.renewedSending().forEach((id, until) -> book.renew(id, (long) (until * 1e9)));
        report.readUnclaimed().forEach(this::onReadUnclaimed);
        for (String id : report.finishedSending()) {
            book.end(id);
            holds.remove(id);
            endedEarly.remove(id);
        }
    }

    /**
     * Whoever has claimed a request may still be reading it: only its own word frees the blocks.
     */
    private void onReadUnclaimed(String requestId) {
        if (!holds.containsKey(requestId) || endedEarly.contains(requestId)) {
            return;
        }
        if (book.endUnclaimed(requestId)) {
            endedEarly.add(requestId);
        } else {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a request was read by two engines, of which one has claimed it: does a router"
                            + " give the same kv_transfer_params to both? request={0}",
                    requestId);
        }
    }

    /**
     * The deadlines that the ranks do not know yet, in seconds of the scheduler's clock. A hold
     * that outlived its limit, which means that a rank has lost it, gets one that has ended: every
     * rank reports it then.
     */
    Map<String, Double> takeLeases(long nowNanos) {
        for (Map.Entry<String, Hold> hold : holds.entrySet()) {
            if (nowNanos - hold.getValue().lostNanos() >= 0) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "a hold outlived its limit and is ended: request={0}",
                        hold.getKey());
                newLeases.put(hold.getKey(), nowNanos / 1e9);
                long againNanos = nowNanos + limit.plus(lease).toNanos();
                hold.setValue(new Hold(againNanos, againNanos));
            }
        }
        Map<String, Double> taken = new LinkedHashMap<>(newLeases);
        newLeases.clear();
        return taken;
    }
}
