package dev.dormouse.memory;

import dev.dormouse.foreign.LibcException;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Host memory whose pages can be given back and fetched again, by tag, under addresses that never
 * change.
 *
 * <p>Every tag starts {@link Residency#ASLEEP}: reserving costs address space only, and the first
 * {@link #wake} brings the first pages. What a region holds after a wake is undefined.
 *
 * <p>Asleep, the addresses stay mapped without pages, so that a late or hostile access by native
 * code (a transport that serves a peer's read) finds zeros and cannot kill the process. Java code
 * does not get there: it needs a {@link MemoryLease}, and every segment from before the sleep
 * throws.
 *
 * <p>One thread at a time makes all calls, except {@link #residency}, which any thread may ask; it
 * may hand the memory on to another. Whoever has registered the memory with a transport must undo
 * that before the sleep: pages that a device has pinned do not return to the machine, and the
 * registration would go on moving the old pages' bytes.
 */
public final class SleepableMemory implements AutoCloseable {
    /** What the process takes besides while it wakes, page tables among it. */
    private static final long WAKE_HEADROOM_BYTES = 64L << 20;

    private final Map<MemoryTag, TagMemory> memories = new EnumMap<>(MemoryTag.class);
    private final PageCalls calls;
    private final LongSupplier nanoClock;

    private SleepableMemory(PageCalls calls, LongSupplier nanoClock) {
        this.calls = calls;
        this.nanoClock = nanoClock;
    }

    /**
     * Reserves the addresses, one range per tag.
     *
     * @param nanoClock as {@link System#nanoTime}, for the durations in reports
     * @throws MemoryException if the kernel refuses; nothing is reserved then
     */
    public static SleepableMemory reserve(MemoryOptions options, LongSupplier nanoClock) {
        return reserve(options, nanoClock, new LibcPageCalls());
    }

    static SleepableMemory reserve(MemoryOptions options, LongSupplier nanoClock, PageCalls calls) {
        SleepableMemory memory = new SleepableMemory(calls, nanoClock);
        for (Map.Entry<MemoryTag, Long> capacity : options.capacityBytes().entrySet()) {
            MemoryTag tag = capacity.getKey();
            try {
                memory.memories.put(
                        tag, new TagMemory(tag, capacity.getValue(), options.poison(), calls));
            } catch (LibcException e) {
                MemoryException failure =
                        new MemoryException(
                                "reserve %s failed: %s".formatted(tag.label(), e.getMessage()), e);
                memory.closeAfter(failure);
                throw failure;
            }
        }
        return memory;
    }

    /**
     * Takes the next piece of a tag's capacity; it lives as long as the memory. May be called
     * whether the tag is awake or not.
     *
     * @param name for messages
     * @return the region, 64-byte aligned
     * @throws IllegalArgumentException if the capacity does not hold it
     */
    public SleepableRegion allocate(String name, MemoryTag tag, long lengthBytes) {
        return memory(tag).allocate(name, lengthBytes);
    }

    /** Where a tag's range starts: a page's address, the same for the life of the memory. */
    public long address(MemoryTag tag) {
        return memory(tag).address();
    }

    /** The tag's capacity in whole pages: what there is to register, to give back and to fetch. */
    public long lengthBytes(MemoryTag tag) {
        return memory(tag).lengthBytes();
    }

    /**
     * The file that holds an awake tag's pages, from its start on: for another process of this host
     * to map. Its length is sealed. The next wake makes another file; whoever still maps this one
     * keeps its pages from the machine, and sees nothing of what becomes of the tag.
     *
     * @return a descriptor of its own, for reading and writing, which the caller closes
     * @throws RegionAsleepException if the tag is asleep
     * @throws MemoryException if the tag is {@link Residency#LOST}, or the kernel refuses
     * @throws IllegalStateException if the memory is closed
     */
    public int export(MemoryTag tag) {
        return memory(tag).export();
    }

    /** Whether the tag's pages are there. Safe for any thread. */
    public Residency residency(MemoryTag tag) {
        return memory(tag).residency();
    }

    /**
     * Gives the pages of the tags back to the machine; they are gone when the call returns. Tags
     * that sleep already are left alone.
     *
     * @throws MemoryInUseException if a lease of one of the tags is live, or a native call still
     *     uses a segment; nothing was changed
     * @throws MemoryException if the kernel refuses. {@link #residency} tells which tags sleep;
     *     those that are still awake have their content, and the call may be repeated.
     */
    public SleepReport sleep(Set<MemoryTag> tags) {
        long startNanos = nanoClock.getAsLong();
        List<TagMemory> awake = select("sleep", tags, Residency.AWAKE);
        awake.forEach(memory -> memory.endUse("sleep"));
        Map<MemoryTag, Long> releasedBytes = new EnumMap<>(MemoryTag.class);
        for (TagMemory memory : awake) {
            memory.sleep();
            releasedBytes.put(memory.tag(), memory.lengthBytes());
        }
        return new SleepReport(releasedBytes, nanoClock.getAsLong() - startNanos);
    }

    /**
     * Brings pages to the tags' addresses; every one is there when the call returns. Tags that are
     * awake already are left alone.
     *
     * @throws NotEnoughMemoryException if the machine or the control group has no room
     * @throws MemoryException if the kernel refuses otherwise. After either, {@link #residency}
     *     tells which tags are awake, and the call may be repeated.
     */
    public WakeReport wake(Set<MemoryTag> tags) {
        long startNanos = nanoClock.getAsLong();
        List<TagMemory> asleep = select("wake", tags, Residency.ASLEEP);
        checkRoom(asleep);
        Map<MemoryTag, Long> mappedBytes = new EnumMap<>(MemoryTag.class);
        for (TagMemory memory : asleep) {
            memory.wake();
            mappedBytes.put(memory.tag(), memory.lengthBytes());
        }
        return new WakeReport(mappedBytes, nanoClock.getAsLong() - startNanos);
    }

    /**
     * Gives pages and addresses back. Idempotent.
     *
     * @throws MemoryInUseException if a lease is live, or a native call still uses a segment;
     *     nothing was changed
     * @throws MemoryException if the kernel refuses; the other tags are closed, and the call may be
     *     repeated
     */
    @Override
    public void close() {
        List<TagMemory> open =
                memories.values().stream()
                        .filter(memory -> memory.residency() != Residency.CLOSED)
                        .toList();
        open.forEach(memory -> memory.endUse("close"));
        @Nullable MemoryException failure = null;
        for (TagMemory memory : open) {
            try {
                memory.close();
            } catch (MemoryException e) {
                if (failure == null) {
                    failure = e;
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /**
     * Asks before taking: the kernel would not fail an allocation that it cannot serve, but kill a
     * process for it.
     */
    private void checkRoom(List<TagMemory> asleep) {
        if (asleep.isEmpty()) {
            return;
        }
        long neededBytes = asleep.stream().mapToLong(TagMemory::lengthBytes).sum();
        long availableBytes = calls.allocatableBytes();
        if (neededBytes > availableBytes - WAKE_HEADROOM_BYTES) {
            EnumSet<MemoryTag> tags = EnumSet.noneOf(MemoryTag.class);
            asleep.forEach(memory -> tags.add(memory.tag()));
            throw new NotEnoughMemoryException(tags, neededBytes, availableBytes, null);
        }
    }

    /** Those of the tags' memories that are in one state; refuses lost and closed ones. */
    private List<TagMemory> select(String operation, Set<MemoryTag> tags, Residency wanted) {
        List<TagMemory> selected = tags.stream().sorted().map(this::memory).toList();
        for (TagMemory memory : selected) {
            switch (memory.residency()) {
                case ASLEEP, AWAKE -> {}
                case LOST -> throw memory.lost(operation);
                case CLOSED ->
                        throw new IllegalStateException(
                                "%s %s refused: the memory is closed"
                                        .formatted(operation, memory.tag().label()));
            }
        }
        return selected.stream().filter(memory -> memory.residency() == wanted).toList();
    }

    private TagMemory memory(MemoryTag tag) {
        TagMemory memory = memories.get(tag);
        if (memory == null) {
            throw new IllegalArgumentException(
                    "memory %s was not reserved; reserved are %s"
                            .formatted(tag.label(), memories.keySet()));
        }
        return memory;
    }

    private void closeAfter(MemoryException failure) {
        try {
            close();
        } catch (MemoryException e) {
            failure.addSuppressed(e);
        }
    }
}
