package dev.dormouse.connector;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The hand-overs that this rank has begun to read, or told their holder not to need. The holder
 * frees a hand-over at the first such word, so parameters that are used a second time name blocks
 * that may hold another prompt by then, although their lease goes on.
 */
final class SpentHandOvers {

    private final long memoryNanos;
    private final int limit;
    private final LinkedHashMap<RemoteSource.Key, Long> spentNanos = new LinkedHashMap<>();

    /**
     * Nothing is spent yet.
     *
     * @param memoryNanos longer than any lease
     * @param limit how many are remembered; then the oldest is forgotten
     */
    SpentHandOvers(long memoryNanos, int limit) {
        this.memoryNanos = memoryNanos;
        this.limit = limit;
    }

    void add(RemoteSource source, long nowNanos) {
        spentNanos.putLast(source.key(), nowNanos);
        if (spentNanos.size() > limit) {
            spentNanos.pollFirstEntry();
        }
    }

    boolean contains(RemoteSource source) {
        return spentNanos.containsKey(source.key());
    }

    /** Forgets what no lease can cover any more. */
    void forget(long nowNanos) {
        for (Map.Entry<RemoteSource.Key, Long> oldest = spentNanos.firstEntry();
                oldest != null && nowNanos - oldest.getValue() >= memoryNanos;
                oldest = spentNanos.firstEntry()) {
            spentNanos.pollFirstEntry();
        }
    }
}
