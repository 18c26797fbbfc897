package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The requests that wait for a producer, and when their leases are to be renewed. */
final class HeartbeatSchedule {
    private record Producer(String engineId, String host, int port, int tpSize) {}

    private final long intervalNanos;
    private final Map<String, RemoteSource> waiting = new LinkedHashMap<>();
    private long lastNanos;
    private boolean sentBefore;

    HeartbeatSchedule(Duration interval) {
        this.intervalNanos = Math.max(1, interval.toNanos());
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
        if (waiting.isEmpty() || (sentBefore && nowNanos - lastNanos < intervalNanos)) {
            return List.of();
        }
        sentBefore = true;
        lastNanos = nowNanos;
        Map<Producer, List<String>> byProducer = new LinkedHashMap<>();
        for (RemoteSource source : waiting.values()) {
            byProducer
                    .computeIfAbsent(
                            new Producer(
                                    source.engineId(),
                                    source.host(),
                                    source.port(),
                                    source.tpSize()),
                            _ -> new ArrayList<>())
                    .add(source.requestId());
        }
        List<Heartbeat> heartbeats = new ArrayList<>();
        byProducer.forEach(
                (producer, ids) ->
                        heartbeats.add(
                                new Heartbeat(
                                        producer.engineId(),
                                        producer.host(),
                                        producer.port(),
                                        producer.tpSize(),
                                        ids)));
        return heartbeats;
    }
}
