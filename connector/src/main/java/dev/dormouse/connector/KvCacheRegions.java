package dev.dormouse.connector;

import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.util.List;

/**
 * One rank's KV cache, as peers see it.
 *
 * @param regions one per attention layer, in layer order
 * @param backing the allocations to register; together they cover every region
 * @param blockTokens tokens per block
 * @param layout order of the dimensions, vLLM's name: {@code LBHNC}
 * @param kind where the memory lies
 * @param deviceId the device's ordinal, 0 for host memory
 */
public record KvCacheRegions(
        List<Region> regions,
        List<MemoryRange> backing,
        int blockTokens,
        String layout,
        MemoryKind kind,
        int deviceId) {
    /**
     * One layer's region.
     *
     * @param name such as {@code model.layers.0.self_attn.attn}
     * @param address its virtual address, the same for the life of the engine
     * @param blocks blocks in the region
     * @param blockBytes bytes of one block
     * @param strideBytes bytes from one block to the next
     */
    public record Region(
            String name, long address, int blocks, long blockBytes, long strideBytes) {}

    /** Copies the lists, and checks that there is a region. */
    public KvCacheRegions {
        regions = List.copyOf(regions);
        backing = List.copyOf(backing);
        if (regions.isEmpty() || backing.isEmpty() || blockTokens < 1) {
            throw new IllegalArgumentException(
                    "KV cache regions: regions="
                            + regions.size()
                            + " backing="
                            + backing.size()
                            + " blockTokens="
                            + blockTokens
                            + "; each must be at least 1");
        }
    }

    /** The same, by the device id under which the memory was registered. */
    KvCacheRegions onDevice(int registeredDeviceId) {
        return new KvCacheRegions(regions, backing, blockTokens, layout, kind, registeredDeviceId);
    }
}
