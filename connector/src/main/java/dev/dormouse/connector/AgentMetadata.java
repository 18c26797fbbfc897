package dev.dormouse.connector;

import java.util.List;

/**
 * What one rank tells its peers about its agent and its memory: vLLM's {@code NixlAgentMetadata},
 * version 15, as far as attention models need it.
 *
 * @param engineId the engine
 * @param agentMetadata the transport's own bytes
 * @param baseAddresses virtual address of each region
 * @param deviceId the device's ordinal, 0 for host memory
 * @param blocks blocks per region
 * @param blockBytes bytes per block of each region
 * @param blockStrides bytes from one block to the next of each region
 * @param layout order of the dimensions
 * @param blockTokens tokens per block
 * @param attentionBackend informational
 * @param regionNames name of each region
 * @param memoryTypes {@code DRAM} or {@code VRAM} of each region
 */
@SuppressWarnings("ArrayRecordComponent") // opaque bytes, copied where they cross a boundary
public record AgentMetadata(
        String engineId,
        byte[] agentMetadata,
        List<Long> baseAddresses,
        int deviceId,
        int blocks,
        List<Long> blockBytes,
        List<Long> blockStrides,
        String layout,
        int blockTokens,
        String attentionBackend,
        List<String> regionNames,
        List<String> memoryTypes) {
    /** Copies the lists. */
    public AgentMetadata {
        baseAddresses = List.copyOf(baseAddresses);
        blockBytes = List.copyOf(blockBytes);
        blockStrides = List.copyOf(blockStrides);
        regionNames = List.copyOf(regionNames);
        memoryTypes = List.copyOf(memoryTypes);
    }
}
