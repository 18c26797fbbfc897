package dev.dormouse.transport.nixl;

import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * A KV cache in sleepable memory and its free blocks, beside weights that sleep and wake, too. What
 * is given back is overwritten at once, so that whoever reads it later reads nonsense, unless old
 * content is to be recognized.
 */
final class KvBlocks {
    static final int BLOCK_TOKENS = 16;
    static final int LAYERS = 2;

    private static final int BLOCKS = 512;
    private static final int BLOCK_BYTES = 16 << 10;
    private static final long LAYER_BYTES = (long) BLOCKS * BLOCK_BYTES;
    private static final long WEIGHT_BYTES = 1 << 20;
    private static final Set<MemoryTag> KV_CACHE = Set.of(MemoryTag.KV_CACHE);
    private static final Set<MemoryTag> WEIGHTS = Set.of(MemoryTag.WEIGHTS);

    private final SleepableMemory memory =
            SleepableMemory.reserve(
                    MemoryOptions.of(
                            Map.of(
                                    MemoryTag.KV_CACHE,
                                    LAYERS * LAYER_BYTES,
                                    MemoryTag.WEIGHTS,
                                    WEIGHT_BYTES)),
                    System::nanoTime);
    private final SleepableRegion region =
            memory.allocate("kv", MemoryTag.KV_CACHE, LAYERS * LAYER_BYTES);
    private final Deque<Integer> free =
            new ArrayDeque<>(IntStream.range(0, BLOCKS).boxed().toList());

    private final boolean overwrites;

    /**
     * Asleep at first.
     *
     * @param overwrites whether blocks that are given back are overwritten
     */
    KvBlocks(boolean overwrites) {
        this.overwrites = overwrites;
    }

    KvCacheRegions regions() {
        List<KvCacheRegions.Region> layers = new ArrayList<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            layers.add(
                    new KvCacheRegions.Region(
                            "layers." + layer,
                            region.address() + layer * LAYER_BYTES,
                            BLOCKS,
                            BLOCK_BYTES,
                            BLOCK_BYTES));
        }
        return new KvCacheRegions(
                layers,
                List.of(
                        new MemoryRange(
                                memory.address(MemoryTag.KV_CACHE),
                                memory.lengthBytes(MemoryTag.KV_CACHE),
                                MemoryKind.DRAM,
                                0)),
                BLOCK_TOKENS,
                "LBHNC",
                MemoryKind.DRAM,
                0);
    }

    void sleep() {
        memory.sleep(Set.of(MemoryTag.KV_CACHE, MemoryTag.WEIGHTS));
    }

    void wakeWeights() {
        memory.wake(WEIGHTS);
    }

    void wake() {
        memory.wake(KV_CACHE);
        forEach(unused(), (segment, _) -> KvContent.poison(segment));
    }

    /** True if nobody has written where nothing is. */
    boolean unusedIsUntouched() {
        boolean[] all = {true};
        forEach(unused(), (segment, _) -> all[0] &= KvContent.isPoisoned(segment));
        return all[0];
    }

    private int[] unused() {
        return free.stream().mapToInt(Integer::intValue).toArray();
    }

    void close() {
        memory.close();
    }

    int free() {
        return free.size();
    }

    int[] allocate(int count) {
        return IntStream.range(0, count).map(_ -> free.removeFirst()).toArray();
    }

    void release(int[] blocks) {
        if (overwrites) {
            forEach(blocks, (segment, _) -> KvContent.poison(segment));
        }
        for (int i = blocks.length - 1; i >= 0; i--) {
            free.addFirst(blocks[i]); // used again at once, in the same order
        }
    }

    void fill(int[] blocks, long seed) {
        forEach(blocks, (segment, place) -> KvContent.fill(segment, seed, place));
    }

    boolean hold(int[] blocks, long seed) {
        boolean[] all = {true};
        forEach(blocks, (segment, place) -> all[0] &= KvContent.matches(segment, seed, place));
        return all[0];
    }

    private interface PlacedBlock {
        void take(MemorySegment block, long place);
    }

    private void forEach(int[] blocks, PlacedBlock action) {
        try (MemoryLease lease = region.lease("blocks")) {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int i = 0; i < blocks.length; i++) {
                    long offset = layer * LAYER_BYTES + (long) blocks[i] * BLOCK_BYTES;
                    action.take(
                            lease.segment().asSlice(offset, BLOCK_BYTES),
                            (long) layer * BLOCKS + i);
                }
            }
        }
    }
}
