package dev.dormouse.memory;

/**
 * A piece of sleepable memory. Its address is the same for the life of the {@link SleepableMemory};
 * its pages come and go.
 */
public final class SleepableRegion {
    private final TagMemory memory;
    private final String name;
    private final long offsetBytes;
    private final long lengthBytes;

    SleepableRegion(TagMemory memory, String name, long offsetBytes, long lengthBytes) {
        this.memory = memory;
        this.name = name;
        this.offsetBytes = offsetBytes;
        this.lengthBytes = lengthBytes;
    }

    /** The name given at allocation. */
    public String name() {
        return name;
    }

    /** The tag it sleeps and wakes with. */
    public MemoryTag tag() {
        return memory.tag();
    }

    /**
     * The virtual address, 64-byte aligned. For registration with transports and for messages to
     * peers; Java code reads and writes through a lease.
     */
    public long address() {
        return memory.address() + offsetBytes;
    }

    /** The length that was asked for. */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * Keeps the region awake until the lease is closed. To be called by the memory's owner thread.
     *
     * @param holder who uses it and for what, for the message of a sleep that is refused
     * @throws RegionAsleepException if the tag is asleep
     * @throws MemoryException if the tag is {@link Residency#LOST}
     * @throws IllegalStateException if the memory is closed
     */
    public MemoryLease lease(String holder) {
        return memory.lease(this, holder);
    }

    long offsetBytes() {
        return offsetBytes;
    }
}
