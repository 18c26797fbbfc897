package dev.dormouse.connector;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * The holder's books on one rank: which requests may be read by others, until when they are held,
 * and who has read them.
 */
final class SendLedger {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    /** When a hold ends, and when it ends although it is renewed. */
    private record Lease(long deadlineNanos, long limitNanos) {}

    private final long extensionNanos;
    private final long holdLimitNanos;
    private final StatisticsRecorder statistics;

    /** The agents that have read a request: engines that claimed it, and those that cannot. */
    private static final class Readers {
        private final Set<String> claiming = new HashSet<>();
        private final Set<String> others = new HashSet<>();
        private boolean othersAreDone;
    }

    /** Requests that a reader may ask for. */
    private final Map<String, Readers> readers = new HashMap<>();

    /** Those that were read by all who do not claim, until the scheduler is told. */
    private final Set<String> readUnclaimed = new HashSet<>();

    /** Requests that were read before their lease came. */
    private final Set<String> readEarly = new HashSet<>();

    private final Map<String, Lease> leases = new HashMap<>();
    private final Map<String, Double> renewed = new HashMap<>();
    private long schedulerOffsetNanos;
    private boolean draining;

    /**
     * Empty books.
     *
     * @param extension how far a renewal extends a lease
     * @param holdLimit how long a request is held at most, however often it is renewed
     */
    SendLedger(Duration extension, Duration holdLimit, StatisticsRecorder statistics) {
        this.extensionNanos = extension.toNanos();
        this.holdLimitNanos = holdLimit.toNanos();
        this.statistics = statistics;
    }

    /**
     * Takes a step's orders; adds to {@code finished} what needs no hold any more.
     *
     * @param nowNanos this rank's clock; the step's deadlines are moved to it
     * @param busy what must not end now, although it may have to
     */
    void take(ConnectorStep step, long nowNanos, Set<String> finished, Predicate<String> busy) {
        schedulerOffsetNanos = nowNanos - (long) (step.schedulerClockSeconds() * 1e9);
        draining = step.draining();
        step.inBatch().forEach(id -> readers.computeIfAbsent(id, _ -> new Readers()));
        step.notProcessed().forEach(this::forget);
        addLeases(step.leases(), nowNanos, finished);
        step.revoked().stream()
                .filter(id -> !busy.test(id)) // it comes again
                .forEach(id -> revoke(id, finished));
    }

    private void addLeases(Map<String, Double> added, long nowNanos, Set<String> finished) {
        added.forEach(
                (id, deadlineSeconds) -> {
                    if (readEarly.contains(id) || !readers.containsKey(id)) {
                        forget(id);
                        finished.add(id);
                    } else {
                        long deadline = (long) (deadlineSeconds * 1e9) + schedulerOffsetNanos;
                        leases.put(id, new Lease(deadline, nowNanos + holdLimitNanos));
                    }
                });
    }

    /** No reader can ask for it any more. */
    private void revoke(String id, Set<String> finished) {
        Readers read = readers.get(id);
        if (leases.containsKey(id)) {
            forget(id);
            finished.add(id);
            if (read == null || !read.othersAreDone) {
                statistics.revokedRequest();
            }
        }
    }

    /** A reader still waits for these requests. */
    void renew(Notification.Renewal renewal, long nowNanos) {
        renewal.requestIds().forEach(id -> renew(id, nowNanos));
    }

    /** True if a reader may ask for the request, now or when it has ended. */
    boolean knows(String id) {
        return readers.containsKey(id);
    }

    /** True if the request has ended and is held. */
    boolean holds(String id) {
        return leases.containsKey(id);
    }

    /** A request was sent to its reader; added to {@code finished} if it was held. */
    void sent(String id, Set<String> finished) {
        if (leases.containsKey(id)) {
            forget(id);
            finished.add(id);
        }
    }

    /** Adds to {@code finished} all requests whose lease has run out, unless they are busy. */
    void expire(long nowNanos, Set<String> finished, Predicate<String> busy) {
        for (Iterator<Map.Entry<String, Lease>> each = leases.entrySet().iterator();
                each.hasNext(); ) {
            Map.Entry<String, Lease> lease = each.next();
            if (nowNanos - lease.getValue().deadlineNanos() >= 0 && !busy.test(lease.getKey())) {
                each.remove();
                renewed.remove(lease.getKey());
                readUnclaimed.remove(lease.getKey());
                Readers seen = readers.remove(lease.getKey());
                statistics.expiredLease();
                finished.add(lease.getKey());
                LOG.log(
                        System.Logger.Level.WARNING,
                        "lease ran out: request={0} readers={1}; its blocks are freed unread",
                        lease.getKey(),
                        seen == null ? 0 : seen.claiming.size() + seen.others.size());
            }
        }
    }

    /** The deadlines that were moved since the last call, in seconds of the scheduler's clock. */
    Map<String, Double> takeRenewed() {
        Map<String, Double> taken = Map.copyOf(renewed);
        renewed.clear();
        return taken;
    }

    /** Nobody relies on a renewal before it was reported and a reader has asked. */
    private void renew(String id, long nowNanos) {
        Lease lease = leases.get(id);
        if (lease == null || draining) {
            return;
        }
        long wanted = nowNanos + extensionNanos;
        long allowed = wanted - lease.limitNanos() < 0 ? wanted : lease.limitNanos();
        if (allowed - lease.deadlineNanos() > 0) {
            leases.put(id, new Lease(allowed, lease.limitNanos()));
            renewed.put(id, (allowed - schedulerOffsetNanos) / 1e9);
        }
    }

    /**
     * A reader is done; adds to {@code finished} what all readers have read that had claimed it.
     * Whether what others have read may be freed, the scheduler decides: it knows whether somebody
     * has claimed it.
     */
    void complete(Notification.Completion completion, String agentName, Set<String> finished) {
        String id = completion.requestId();
        Readers seen = readers.get(id);
        if (seen == null || readEarly.contains(id)) {
            statistics.notificationAfterExpiry();
            LOG.log(
                    System.Logger.Level.WARNING,
                    "completion for a request that is not held: request={0} agent={1}",
                    Excerpt.of(id),
                    Excerpt.of(agentName));
            return;
        }
        Set<String> done = completion.claimed() ? seen.claiming : seen.others;
        done.add(agentName);
        if (done.size() < completion.consumers()) {
            return;
        }
        if (!completion.claimed()) {
            seen.othersAreDone = true;
            readUnclaimed.add(id);
        } else if (leases.containsKey(id)) {
            forget(id);
            finished.add(id);
        } else { // reported now, it would be held for ever once its lease came
            readEarly.add(id);
        }
    }

    /** Held requests that all have read who do not claim, since the last call. */
    Set<String> takeReadUnclaimed() {
        Set<String> taken = new HashSet<>(readUnclaimed);
        taken.retainAll(leases.keySet()); // before its lease comes, a request is not held
        readUnclaimed.removeAll(taken);
        return taken;
    }

    private void forget(String id) {
        readers.remove(id);
        readUnclaimed.remove(id);
        readEarly.remove(id);
        leases.remove(id);
        renewed.remove(id);
    }
}
