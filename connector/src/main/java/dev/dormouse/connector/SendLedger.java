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

    private final long extensionNanos;
    private final StatisticsRecorder statistics;

    /** Requests that a reader may ask for, with the agents that have read them. */
    private final Map<String, Set<String>> readers = new HashMap<>();

    private final Map<String, Long> deadlineNanos = new HashMap<>();

    SendLedger(Duration extension, StatisticsRecorder statistics) {
        this.extensionNanos = extension.toNanos();
        this.statistics = statistics;
    }

    /**
     * Takes a step's orders.
     *
     * @param nowNanos this rank's clock; the step's deadlines are moved to it
     */
    void take(ConnectorStep step, long nowNanos) {
        step.inBatch().forEach(id -> readers.computeIfAbsent(id, _ -> new HashSet<>()));
        step.notProcessed().forEach(this::forget);
        step.leases()
                .forEach(
                        (id, deadlineSeconds) -> {
                            if (readers.containsKey(id)) { // not read to the end already
                                double left = deadlineSeconds - step.schedulerClockSeconds();
                                deadlineNanos.put(id, nowNanos + (long) (left * 1e9));
                            }
                        });
    }

    /** Takes a reader's message; adds to {@code finished} what all readers have read. */
    void take(PeerMessage message, long nowNanos, Set<String> finished) {
        switch (Notification.decode(message.bytes())) {
            case Notification.Renewal renewal ->
                    renewal.requestIds()
                            .forEach(
                                    id ->
                                            deadlineNanos.computeIfPresent(
                                                    id,
                                                    (_, old) ->
                                                            later(old, nowNanos + extensionNanos)));
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
        for (Iterator<Map.Entry<String, Long>> leases = deadlineNanos.entrySet().iterator();
                leases.hasNext(); ) {
            Map.Entry<String, Long> lease = leases.next();
            if (nowNanos - lease.getValue() >= 0) {
                leases.remove();
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

    private void complete(
            Notification.Completion completion, PeerMessage message, Set<String> finished) {
        String id = completion.requestId();
        Set<String> seen = readers.get(id);
        if (seen == null) {
            statistics.notificationAfterExpiry();
            LOG.log(
                    System.Logger.Level.WARNING,
                    "completion for a request that is not held: request={0} agent={1}",
                    Excerpt.of(id),
                    Excerpt.of(message.agentName()));
            return;
        }
        seen.add(message.agentName());
        if (seen.size() >= completion.consumers()) {
            forget(id);
            finished.add(id);
        }
    }

    private void forget(String id) {
        readers.remove(id);
        deadlineNanos.remove(id);
    }

    private static long later(long first, long second) {
        return first - second >= 0 ? first : second;
    }
}
