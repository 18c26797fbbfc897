package dev.dormouse.connector;

import dev.dormouse.transport.TransportMetadata;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What one rank tells its peers about its agent and its memory: vLLM's {@code NixlAgentMetadata},
 * version 15. The components stand in wire order.
 *
 * @param engineId the engine
 * @param agentMetadata the transport's own bytes; what is for the same host only is a key of this
 *     product's, which vLLM ignores
 * @param baseAddresses virtual address of each region
 * @param deviceId the device's ordinal, 0 for host memory
 * @param blocks blocks per region
 * @param blockBytes bytes per block of each region
 * @param blockStrides bytes from one block to the next of each region
 * @param layout order of the dimensions, such as {@code LBHNC}
 * @param blockTokens tokens per block
 * @param ssmSizes bytes of convolution and state, both 0 where there are none
 * @param attentionBackend informational
 * @param physicalBlocksPerLogical kernel blocks per scheduler block
 * @param regionBlocks blocks of each region, or null if all have {@code blocks}
 * @param regionGroups KV cache group of each region, or null if there is one
 * @param regionNames name of each region, or null if the peer does not tell
 * @param memoryTypes {@code DRAM} or {@code VRAM} of each region, or null if the peer does not tell
 * @param dcpSize decode context parallel size
 * @param pcpSize prefill context parallel size
 * @param pleBlockBytes page length of per-layer embeddings, or null
 * @param regionMembers names of all layers in each region; empty unless regions are shared
 * @param packedMembers per layer, offset and bytes in a packed row; empty unless rows are packed
 */
public record AgentMetadata(
        String engineId,
        TransportMetadata agentMetadata,
        List<Long> baseAddresses,
        int deviceId,
        int blocks,
        List<Long> blockBytes,
        List<Long> blockStrides,
        String layout,
        int blockTokens,
        List<Long> ssmSizes,
        String attentionBackend,
        int physicalBlocksPerLogical,
        @Nullable List<Long> regionBlocks,
        @Nullable List<Long> regionGroups,
        @Nullable List<String> regionNames,
        @Nullable List<String> memoryTypes,
        int dcpSize,
        int pcpSize,
        @Nullable Long pleBlockBytes,
        List<List<String>> regionMembers,
        Map<String, List<Long>> packedMembers) {
    /** Copies the collections; the map keeps its order. */
    public AgentMetadata {
        baseAddresses = List.copyOf(baseAddresses);
        blockBytes = List.copyOf(blockBytes);
        blockStrides = List.copyOf(blockStrides);
        ssmSizes = List.copyOf(ssmSizes);
        regionBlocks = regionBlocks == null ? null : List.copyOf(regionBlocks);
        regionGroups = regionGroups == null ? null : List.copyOf(regionGroups);
        regionNames = regionNames == null ? null : List.copyOf(regionNames);
        memoryTypes = memoryTypes == null ? null : List.copyOf(memoryTypes);
        regionMembers = List.copyOf(regionMembers);
        packedMembers = Collections.unmodifiableMap(new LinkedHashMap<>(packedMembers));
    }

    /**
     * Metadata of a rank whose regions hold one attention layer each.
     *
     * @param agentMetadata the transport's own bytes, taken after the regions were registered
     */
    static AgentMetadata ofAttention(
            String engineId,
            TransportMetadata agentMetadata,
            KvCacheRegions cache,
            String attentionBackend) {
        List<KvCacheRegions.Region> regions = cache.regions();
        return new AgentMetadata(
                engineId,
                agentMetadata,
                regions.stream().map(KvCacheRegions.Region::address).toList(),
                cache.deviceId(),
                regions.getFirst().blocks(),
                regions.stream().map(KvCacheRegions.Region::blockBytes).toList(),
                regions.stream().map(KvCacheRegions.Region::strideBytes).toList(),
                cache.layout(),
                cache.blockTokens(),
                List.of(0L, 0L),
                attentionBackend,
                1,
                regions.stream().map(region -> (long) region.blocks()).toList(),
                regions.stream().map(region -> 0L).toList(),
                regions.stream().map(KvCacheRegions.Region::name).toList(),
                regions.stream().map(region -> cache.kind().name()).toList(),
                1,
                1,
                null,
                List.of(),
                Map.of());
    }
}
