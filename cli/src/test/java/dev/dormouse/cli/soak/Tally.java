package dev.dormouse.cli.soak;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;

/** What came of requests and transitions. Thread-safe. */
final class Tally {
    private static final int FAULTS_KEPT = 50;

    private final Map<String, LongAdder> counts = new ConcurrentSkipListMap<>();
    private final Map<String, Long> slowestMillis = new ConcurrentHashMap<>();
    private final Queue<String> faults = new ConcurrentLinkedQueue<>();

    void count(String kind) {
        counts.computeIfAbsent(kind, _ -> new LongAdder()).increment();
    }

    void took(String kind, long nanos) {
        slowestMillis.merge(kind, nanos / 1_000_000, Math::max);
    }

    /** Something that must not happen. */
    void fault(String what) {
        count("fault");
        if (faults.size() < FAULTS_KEPT) {
            faults.add(what);
        }
    }

    boolean isFaultless() {
        return faults.isEmpty();
    }

    /** Answers that were the oracle's. */
    long right() {
        return counts.entrySet().stream()
                .filter(entry -> entry.getKey().endsWith(": right"))
                .mapToLong(entry -> entry.getValue().sum())
                .sum();
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        counts.forEach(
                (kind, count) ->
                        text.append("  ").append(kind).append(": ").append(count).append('\n'));
        text.append("  slowest, in ms: ").append(slowestMillis).append('\n');
        faults.forEach(fault -> text.append("  FAULT ").append(fault).append('\n'));
        return text.toString();
    }
}
