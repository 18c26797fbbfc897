package dev.dormouse.memory;

import java.util.Map;
import java.util.Optional;

/**
 * What to reserve.
 *
 * @param capacityBytes bytes per tag, rounded up to whole pages; a tag that is absent does not
 *     exist. All of a tag's capacity is backed by pages while the tag is awake, allocated or not.
 * @param poison for debugging: fills the memory of a tag with this byte at every wake, so that code
 *     which relies on content from before the sleep shows
 */
public record MemoryOptions(Map<MemoryTag, Long> capacityBytes, Optional<Byte> poison) {
    /** Beyond any machine's memory, and small enough that no sum of capacities overflows. */
    private static final long MAXIMUM_CAPACITY_BYTES = 1L << 46;

    /** Checks the capacities. */
    public MemoryOptions {
        capacityBytes = Map.copyOf(capacityBytes);
        if (capacityBytes.isEmpty()) {
            throw new IllegalArgumentException("memory options: no tag has a capacity");
        }
        capacityBytes.forEach(
                (tag, bytes) -> {
                    if (bytes < 1 || bytes > MAXIMUM_CAPACITY_BYTES) {
                        throw new IllegalArgumentException(
                                "memory options: capacity of %s is %d bytes, must be 1 to %d"
                                        .formatted(tag.label(), bytes, MAXIMUM_CAPACITY_BYTES));
                    }
                });
    }

    /** Capacities without poison. */
    public static MemoryOptions of(Map<MemoryTag, Long> capacityBytes) {
        return new MemoryOptions(capacityBytes, Optional.empty());
    }

    /** These capacities with poison. */
    public MemoryOptions withPoison(byte value) {
        return new MemoryOptions(capacityBytes, Optional.of(value));
    }
}
