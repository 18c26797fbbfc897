package dev.dormouse.engine.core;

import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.Residency;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;

/** A rank's memory of the machine: one region per tag. */
final class MachineMemory implements RankMemory {
    private static final byte POISON = (byte) 0x5a;

    private final SleepableMemory memory;
    private final MemoryFiles files;
    private final Map<MemoryTag, SleepableRegion> regions = new EnumMap<>(MemoryTag.class);

    private MachineMemory(
            int rank,
            Map<MemoryTag, Long> capacityBytes,
            SleepableMemory memory,
            MemoryFiles files) {
        this.memory = memory;
        this.files = files;
        capacityBytes.forEach(
                (tag, bytes) ->
                        regions.put(
                                tag, memory.allocate(tag.label() + ".rank" + rank, tag, bytes)));
        files.add(memory, capacityBytes.keySet());
    }

    /**
     * The machine's memory.
     *
     * @param poison whether woken memory is filled with a pattern
     * @param files are told of it
     */
    static Source source(boolean poison, LongSupplier nanoClock, MemoryFiles files) {
        return (rank, capacityBytes) -> {
            MemoryOptions options = MemoryOptions.of(capacityBytes);
            return new MachineMemory(
                    rank,
                    capacityBytes,
                    SleepableMemory.reserve(
                            poison ? options.withPoison(POISON) : options, nanoClock),
                    files);
        };
    }

    @Override
    public long address(MemoryTag tag) {
        return memory.address(tag);
    }

    @Override
    public long lengthBytes(MemoryTag tag) {
        return memory.lengthBytes(tag);
    }

    @Override
    public boolean isAwake(MemoryTag tag) {
        return memory.residency(tag) == Residency.AWAKE;
    }

    @Override
    public Use use(MemoryTag tag, String holder) {
        SleepableRegion region = regions.get(tag);
        if (region == null) {
            throw new IllegalArgumentException("use: " + tag.label() + " was not reserved");
        }
        return new Lease(region.lease(holder));
    }

    @Override
    public long sleep(Set<MemoryTag> tags) {
        return sum(memory.sleep(tags).releasedBytes());
    }

    @Override
    public long wake(Set<MemoryTag> tags) {
        return sum(memory.wake(tags).mappedBytes());
    }

    @Override
    public void close() {
        files.remove(memory);
        memory.close();
    }

    private record Lease(MemoryLease lease) implements Use {
        @Override
        public MemorySegment segment() {
            return lease.segment();
        }

        @Override
        public void close() {
            lease.close();
        }
    }

    private static long sum(Map<MemoryTag, Long> bytes) {
        return bytes.values().stream().mapToLong(Long::longValue).sum();
    }
}
