package dev.dormouse.simulation;

import dev.dormouse.engine.core.RankMemory;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.testkit.ModelMemory;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/** A rank's memory of model pages, which a transport of the model may still have pinned. */
final class PagedMemory implements RankMemory {
    static final int PAGE_BYTES = 256;

    /** A tag's addresses. */
    private record Range(long address, long capacityBytes) {
        long lengthBytes() {
            return Math.ceilDiv(capacityBytes, (long) PAGE_BYTES) * PAGE_BYTES;
        }
    }

    private final ModelMemory pages;
    private final Map<MemoryTag, Range> ranges = new EnumMap<>(MemoryTag.class);
    private final EnumSet<MemoryTag> awake = EnumSet.noneOf(MemoryTag.class);
    private final EnumSet<MemoryTag> inUse = EnumSet.noneOf(MemoryTag.class);
    private int failingSleeps;
    private int failingWakes;

    PagedMemory(ModelMemory pages, Map<MemoryTag, Long> capacityBytes) {
        this.pages = pages;
        for (MemoryTag tag : MemoryTag.values()) {
            Long bytes = capacityBytes.get(tag);
            if (bytes != null) {
                ranges.put(tag, new Range(pages.reserve(bytes), bytes));
            }
        }
    }

    /** The next {@code times} pages cannot go. */
    void failSleeps(int times) {
        failingSleeps = times;
    }

    /** The machine has no memory the next {@code times}. */
    void failWakes(int times) {
        failingWakes = times;
    }

    /** Bytes that a rank may have by what is awake. */
    long dueBytes() {
        return awake.stream().mapToLong(this::lengthBytes).sum();
    }

    /** Bytes that it has. */
    long residentBytes() {
        return pages.residentBytes();
    }

    @Override
    public long address(MemoryTag tag) {
        return range(tag).address();
    }

    @Override
    public long lengthBytes(MemoryTag tag) {
        return range(tag).lengthBytes();
    }

    @Override
    public boolean isAwake(MemoryTag tag) {
        return awake.contains(tag);
    }

    @Override
    public Use use(MemoryTag tag, String holder) {
        if (!awake.contains(tag) || !inUse.add(tag)) {
            throw new Violation(holder + " uses " + tag + " while it is away or in use");
        }
        Range range = range(tag);
        int bytes = Math.toIntExact(range.capacityBytes());
        MemorySegment copy = MemorySegment.ofArray(new long[bytes / Long.BYTES]);
        copy.copyFrom(MemorySegment.ofArray(pages.read(range.address(), bytes)));
        return new Use() {
            @Override
            public MemorySegment segment() {
                return copy;
            }

            @Override
            public void close() {
                if (inUse.remove(tag)) {
                    byte[] content = new byte[bytes];
                    MemorySegment.ofArray(content).copyFrom(copy);
                    pages.write(range.address(), content);
                }
            }
        };
    }

    @Override
    public long sleep(Set<MemoryTag> tags) {
        long bytes = 0;
        for (MemoryTag tag : MemoryTag.values()) {
            if (tags.contains(tag) && awake.contains(tag)) {
                if (inUse.contains(tag)) {
                    throw new Violation(tag + " sleeps while it is in use");
                }
                if (failingSleeps > 0) {
                    failingSleeps--;
                    throw new IllegalStateException("sleep " + tag.label() + ": injected fault");
                }
                pages.unmap(address(tag), lengthBytes(tag));
                awake.remove(tag);
                bytes += lengthBytes(tag);
            }
        }
        return bytes;
    }

    @Override
    public long wake(Set<MemoryTag> tags) {
        long bytes = 0;
        for (MemoryTag tag : MemoryTag.values()) {
            if (tags.contains(tag) && !awake.contains(tag)) {
                if (failingWakes > 0) {
                    failingWakes--;
                    throw new IllegalStateException("wake " + tag.label() + ": injected fault");
                }
                pages.map(address(tag), lengthBytes(tag));
                awake.add(tag);
                bytes += lengthBytes(tag);
            }
        }
        return bytes;
    }

    @Override
    public void close() {
        failingSleeps = 0;
        var _ = sleep(ranges.keySet());
    }

    private Range range(MemoryTag tag) {
        Range range = ranges.get(tag);
        if (range == null) {
            throw new IllegalArgumentException(tag + " was not reserved");
        }
        return range;
    }
}
