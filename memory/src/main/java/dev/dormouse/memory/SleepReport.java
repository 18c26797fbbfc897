package dev.dormouse.memory;

import java.util.Map;

/**
 * What a sleep gave back.
 *
 * @param releasedBytes per tag that was awake; tags that slept already are absent
 * @param durationNanos how long the call took
 */
public record SleepReport(Map<MemoryTag, Long> releasedBytes, long durationNanos) {
    /** Copies the map. */
    public SleepReport {
        releasedBytes = Map.copyOf(releasedBytes);
    }
}
