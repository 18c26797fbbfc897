package dev.dormouse.engine;

import dev.dormouse.connector.TransferStatistics;
import java.util.List;

/**
 * Figures since the engine's start, and gauges of now. Histogram samples are handed out once.
 *
 * @param running sequences being computed
 * @param waiting sequences waiting to be scheduled
 * @param waitingForRemoteKv sequences whose prompt is being read from another engine
 * @param heldForRemote ended sequences whose blocks are held for a reader
 * @param kvBlocks blocks of the KV cache
 * @param kvBlocksFree blocks that are free or only cached
 * @param promptTokens prompt tokens of requests, in all
 * @param computedPromptTokens prompt tokens whose KV this engine computed itself, again after a
 *     preemption; without the last token of a prompt that was read in full, which is computed once
 *     more for its logits
 * @param remotePromptTokens prompt tokens whose KV was read from another engine
 * @param generatedTokens tokens generated
 * @param preemptions sequences that lost their blocks and were recomputed
 * @param prefixCacheQueries prompt tokens looked up in the prefix cache
 * @param prefixCacheHits of them, found
 * @param registrationEpoch the connector's epoch
 * @param transfers the connector's figures since the start, without samples
 * @param samples samples since the last call, for histograms
 * @param transitions transitions since the last call
 */
public record EngineStatistics(
        int running,
        int waiting,
        int waitingForRemoteKv,
        int heldForRemote,
        int kvBlocks,
        int kvBlocksFree,
        long promptTokens,
        long computedPromptTokens,
        long remotePromptTokens,
        long generatedTokens,
        long preemptions,
        long prefixCacheQueries,
        long prefixCacheHits,
        long registrationEpoch,
        TransferStatistics transfers,
        List<TransferStatistics.TransferSample> samples,
        List<TransitionSample> transitions) {
    /**
     * One transition's duration.
     *
     * @param operation {@code sleep}, {@code release_kv_cache_memory} or {@code wake}
     * @param seconds how long it took
     */
    public record TransitionSample(String operation, double seconds) {}
}
