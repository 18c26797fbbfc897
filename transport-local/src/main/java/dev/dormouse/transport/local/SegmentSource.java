package dev.dormouse.transport.local;

import dev.dormouse.transport.MemoryRange;

/** Knows what backs this process's memory, for peers to map. */
@FunctionalInterface
public interface SegmentSource {
    /**
     * What lies under a range at this moment: for host memory a {@link BackingFile}, whose length
     * must be sealed ({@code F_SEAL_SHRINK} and {@code F_SEAL_GROW}), so that no peer can lose
     * pages under its mapping; for device memory {@link BackingPieces}.
     *
     * @throws RuntimeException if nothing backs all of the range that peers could map, or it is
     *     asleep
     */
    Backing export(MemoryRange range);
}
