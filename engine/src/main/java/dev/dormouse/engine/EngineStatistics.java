package dev.dormouse.engine;

import dev.dormouse.connector.TransferStatistics;
import java.util.List;
import java.util.Map;

/**
 * Figures since the engine's start, and gauges of now. Whoever asks gets all of them.
 *
 * @param running sequences being computed
 * @param waiting sequences waiting to be scheduled
 * @param waitingForRemoteKv sequences whose prompt another engine holds and is being read, or
 *     pushed, from there; not among those that are waiting
 * @param heldForRemote ended sequences whose blocks are held for a reader
 * @param kvBlocksHeld their blocks; one that several have counts once
 * @param kvBlocksQuarantined blocks that nobody uses since a read that failed may still write them
 * @param kvBlocks blocks of the KV cache
 * @param kvBlocksFree blocks that are free or only cached
 * @param promptTokens prompt tokens of requests, in all
 * @param computedPromptTokens prompt tokens whose KV this engine computed itself, again after a
 *     preemption; without the last token of a prompt that was read in full, even if that is
 *     computed once more for its logits
 * @param remotePromptTokens prompt tokens whose KV was read from another engine
 * @param remoteFirstTokens first tokens of outputs that were not chosen here, but by the engine
 *     that the prompt was read from
 * @param generatedTokens tokens of outputs, those included
 * @param preemptions sequences that lost their blocks and were recomputed
 * @param prefixCacheQueries prompt tokens looked up in the prefix cache
 * @param prefixCacheHits of them, found
 * @param registrationEpoch the connector's epoch
 * @param transfers the connector's figures since the start, without samples
 * @param transferSizes what successful transfers were like
 * @param transitionSeconds how long transitions took that changed something, by {@linkplain
 *     #TRANSITIONS operation}
 */
public record EngineStatistics(
        int running,
        int waiting,
        int waitingForRemoteKv,
        int heldForRemote,
        int kvBlocksHeld,
        int kvBlocksQuarantined,
        int kvBlocks,
        int kvBlocksFree,
        long promptTokens,
        long computedPromptTokens,
        long remotePromptTokens,
        long remoteFirstTokens,
        long generatedTokens,
        long preemptions,
        long prefixCacheQueries,
        long prefixCacheHits,
        long registrationEpoch,
        TransferStatistics transfers,
        Transfers transferSizes,
        Map<String, Histogram> transitionSeconds) {
    /** The operations that are measured, as vLLM names them. */
    public static final List<String> TRANSITIONS =
            List.of("sleep", "release_kv_cache_memory", "wake");

    /**
     * What successful transfers were like, one by one.
     *
     * @param seconds from post to completion
     * @param postSeconds to post
     * @param bytes bytes moved
     * @param descriptors descriptors after merging neighbours
     */
    public record Transfers(
            Histogram seconds, Histogram postSeconds, Histogram bytes, Histogram descriptors) {}

    /** Copies the map. */
    public EngineStatistics {
        transitionSeconds = Map.copyOf(transitionSeconds);
    }
}
