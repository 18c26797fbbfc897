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

    private final Duration lease;
    private final Duration limit;
    private final HoldBook book;
    private final Map<String, Long> sinceNanos = new HashMap<>();
    private final Map<String, Double> newLeases = new HashMap<>();

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
        return new LinkedHashSet<>(sinceNanos.keySet());
    }

    int size() {
        return sinceNanos.size();
    }

    /** Holds a request from now on; returns the lease. */
    RemoteLease hold(String requestId, long nowNanos) {
        long untilNanos = nowNanos + lease.toNanos();
        RemoteLease given = new RemoteLease(untilNanos / 1e9, lease.toNanos() / 1e9);
        newLeases.put(requestId, given.deadlineSeconds());
        sinceNanos.put(requestId, nowNanos);
        book.hold(requestId, untilNanos);
        return given;
    }

    /** Takes what the ranks report of holds. */
    void onReport(WorkerReport report) {
        report.renewedSending().forEach((id, until) -> book.renew(id, (long) (until * 1e9)));
        for (String id : report.finishedSending()) {
            book.end(id);
            sinceNanos.remove(id);
        }
    }

    /**
     * The deadlines that the ranks do not know yet, in seconds of the scheduler's clock. A hold
     * that outlived its limit, which means that a rank has lost it, gets one that has ended: every
     * rank reports it then.
     */
    Map<String, Double> takeLeases(long nowNanos) {
        long tooOldNanos = limit.plus(lease).toNanos();
        for (Map.Entry<String, Long> hold : sinceNanos.entrySet()) {
            if (nowNanos - hold.getValue() >= tooOldNanos) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "a hold outlived its limit and is ended: request={0}",
                        hold.getKey());
                newLeases.put(hold.getKey(), nowNanos / 1e9);
                hold.setValue(nowNanos);
            }
        }
        Map<String, Double> taken = new LinkedHashMap<>(newLeases);
        newLeases.clear();
        return taken;
    }
}
