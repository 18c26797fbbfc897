package dev.dormouse.memory;

import java.lang.foreign.MemorySegment;

/**
 * The right to use a region: while it lives, the region's memory does not go to sleep.
 *
 * <p>Opened and closed by the memory's owner thread; any thread may use the segment. A segment that
 * is kept after the lease was closed throws {@link IllegalStateException} from the next sleep on,
 * also after the wake that follows.
 */
public final class MemoryLease implements AutoCloseable {
    private final TagMemory memory;
    private final SleepableRegion region;
    private final String holder;
    private final MemorySegment segment;
    private boolean closed;

    MemoryLease(TagMemory memory, SleepableRegion region, String holder, MemorySegment segment) {
        this.memory = memory;
        this.region = region;
        this.holder = holder;
        this.segment = segment;
    }

    /**
     * The region's memory, {@link SleepableRegion#lengthBytes()} long.
     *
     * @throws IllegalStateException if the lease is closed
     */
    public MemorySegment segment() {
        if (closed) {
            throw new IllegalStateException("segment of " + this + ": the lease is closed");
        }
        return segment;
    }

    /** Ends the use. Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            memory.end(this);
        }
    }

    @Override
    public String toString() {
        return holder + " (" + region.name() + ")";
    }
}
