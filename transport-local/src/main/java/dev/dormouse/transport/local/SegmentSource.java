package dev.dormouse.transport.local;

import dev.dormouse.transport.MemoryRange;

/** Knows which file in memory backs this process's memory, for peers to map. */
@FunctionalInterface
public interface SegmentSource {
    /**
     * The file behind a range at this moment. Its length must be sealed ({@code F_SEAL_SHRINK} and
     * {@code F_SEAL_GROW}), so that no peer can lose pages under its mapping.
     *
     * @throws RuntimeException if no file backs all of the range, or it is asleep
     */
    BackingFile export(MemoryRange range);
}
