package dev.dormouse.memory;

import java.util.Map;

/**
 * What a wake brought.
 *
 * @param mappedBytes per tag that was asleep; tags that were awake already are absent, and their
 *     content is untouched
 * @param durationNanos how long the call took
 */
public record WakeReport(Map<MemoryTag, Long> mappedBytes, long durationNanos) {
    /** Copies the map. */
    public WakeReport {
        mappedBytes = Map.copyOf(mappedBytes);
    }
}
