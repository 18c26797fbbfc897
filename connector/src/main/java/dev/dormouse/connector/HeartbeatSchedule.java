package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The requests that wait for a producer, and when their leases are to be renewed: each producer at
 * the pace of its own leases.
 */
final class HeartbeatSchedule {
    private record Producer(String engineId, String host, int port, int tpSize, Duration lease) {
        /** vLLM's: a sixth of the lease. */
        long intervalNanos() {
            return Math.max(1, lease.toNanos() / 6);
        }
    }

    private final Duration ownLease;
    private final Map<String, RemoteSource> waiting = new LinkedHashMap<>();
    private final Map<Producer, Long> sentNanos = new HashMap<>();

    /**
     * An empty schedule.
     *
     * @param ownLease stands in for the lease of a producer that does not tell it
     */
    HeartbeatSchedule(Duration ownLease) {
        this.ownLease = ownLease;
    }

    void add(String requestId, RemoteSource source) {
        if (!source.requestId().contains(",")) { // a heartbeat separates ids by it
            waiting.put(requestId, source);
        }
    }

    void remove(String requestId) {
        waiting.remove(requestId);
    }

    /** The renewals that are due at {@code nowNanos}, one per producer. */
    List<Heartbeat> due(long nowNanos) {
        sentNanos.entrySet().removeIf(sent -> isDue(sent.getKey(), sent.getValue(), nowNanos));
        if (waiting.isEmpty()) {
            return List.of();
        }
        Map<Producer, List<RemoteSource>> byProducer = new LinkedHashMap<>();
        for (RemoteSource source : waiting.values()) {
            Producer producer = producer(source);
            if (!sentNanos.containsKey(producer)) {
                byProducer.computeIfAbsent(producer, _ -> new ArrayList<>()).add(source);
            }
        }
        List<Heartbeat> heartbeats = new ArrayList<>();
        byProducer.forEach(
                (producer, sources) -> {
                    sentNanos.put(producer, nowNanos);
                    heartbeats.add(
                            new Heartbeat(
                                    producer.engineId(),
                                    producer.host(),
                                    producer.port(),
                                    producer.tpSize(),
                                    sources.stream().mapToLong(RemoteSource::epoch).max().orElse(0),
                                    producer.lease(),
                                    sources.stream().map(RemoteSource::requestId).toList()));
                });
        return heartbeats;
    }

    private Producer producer(RemoteSource source) {
        double seconds = source.lease().lengthSeconds();
        Duration lease = seconds > 0 ? Duration.ofNanos((long) (seconds * 1e9)) : ownLease;
        return new Producer(
                source.engineId(), source.host(), source.port(), source.tpSize(), lease);
    }

    private static boolean isDue(Producer producer, long sentNanos, long nowNanos) {
        return nowNanos - sentNanos >= producer.intervalNanos();
    }
}
