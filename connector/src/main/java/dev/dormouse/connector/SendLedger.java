package dev.dormouse.connector;

import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;

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

    /** Requests that a reader may ask for, with the agents that have read them. */
    private final Map<String, Set<String>> readers = new HashMap<>();

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
     */
    void take(ConnectorStep step, long nowNanos, Set<String> finished) {
        schedulerOffsetNanos = nowNanos - (long) (step.schedulerClockSeconds() * 1e9);
        draining = step.draining();
        step.inBatch().forEach(id -> readers.computeIfAbsent(id, _ -> new HashSet<>()));
        step.notProcessed().forEach(this::forget);
        addLeases(step.leases(), nowNanos, finished);
        step.revoked().forEach(id -> revoke(id, finished));
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
        if (leases.containsKey(id)) {
            forget(id);
            finished.add(id);
            statistics.revokedRequest();
        }
    }

    /** Takes a reader's message; adds to {@code finished} what all readers have read. */
    void take(PeerMessage message, long nowNanos, Set<String> finished) {
        switch (Notification.decode(message.bytes())) {
            case Notification.Renewal renewal ->
                    renewal.requestIds().forEach(id -> renew(id, nowNanos));
            case Notification.Completion completion -> complete(completion, message, finished);
            case Notification.Malformed malformed -> {
                statistics.malformedNotification();
                LOG.log(
                        System.Logger.Level.WARNING,
                        "dropped a message: agent={0} problem={1}",
                        Excerpt.of(message.agentName()),
                        malformed.problem());
            }
        }
    }

    /** Adds to {@code finished} all requests whose lease has run out. */
    void expire(long nowNanos, Set<String> finished) {
        for (Iterator<Map.Entry<String, Lease>> each = leases.entrySet().iterator();
                each.hasNext(); ) {
            Map.Entry<String, Lease> lease = each.next();
            if (nowNanos - lease.getValue().deadlineNanos() >= 0) {
                each.remove();
                renewed.remove(lease.getKey());
                Set<String> seen = readers.remove(lease.getKey());
                statistics.expiredRequest();
                finished.add(lease.getKey());
                LOG.log(
                        System.Logger.Level.WARNING,
                        "lease ran out: request={0} readers={1}; its blocks are freed unread",
                        lease.getKey(),
                        seen == null ? 0 : seen.size());
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

    private void complete(
            Notification.Completion completion, PeerMessage message, Set<String> finished) {
        String id = completion.requestId();
        Set<String> seen = readers.get(id);
        if (seen == null || readEarly.contains(id)) {
            statistics.notificationAfterExpiry();
            LOG.log(
                    System.Logger.Level.WARNING,
                    "completion for a request that is not held: request={0} agent={1}",
                    Excerpt.of(id),
                    Excerpt.of(message.agentName()));
            return;
        }
        seen.add(message.agentName());
        if (seen.size() < completion.consumers()) {
            return;
        }
        if (leases.containsKey(id)) {
            forget(id);
            finished.add(id);
        } else { // reported now, it would be held for ever once its lease came
            readEarly.add(id);
        }
    }

    private void forget(String id) {
        readers.remove(id);
        readEarly.remove(id);
        leases.remove(id);
        renewed.remove(id);
    }
}
