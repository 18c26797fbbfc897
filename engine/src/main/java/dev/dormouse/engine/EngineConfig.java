package dev.dormouse.engine;

import dev.dormouse.model.KvType;

/**
 * An engine's settings.
 *
 * @param servedModelName the name in API requests
 * @param kvCacheBytes memory for the KV cache, over all layers and ranks
 * @param blockTokens tokens per KV block
 * @param kvType element type of the KV cache
 * @param maxModelLength longest prompt plus output, in tokens
 * @param maxSequences sequences computed at once
 * @param maxBatchedTokens tokens computed in one step
 * @param maxWaiting requests that may be there beyond {@code maxSequences}; more are refused
 * @param prefixCaching whether prefixes are kept and shared
 * @param sleepMode whether memory may be given back
 * @param holdRequestsWhileAsleep whether requests that arrive while it cannot take any wait instead
 *     of being refused
 * @param recomputeFailedLoads what becomes of a request whose KV cannot be read: true recomputes
 *     its prompt, false fails it
 * @param poisonWokenMemory fills woken memory with a pattern, so that a read of what was never
 *     written shows; for debugging
 */
public record EngineConfig(
        String servedModelName,
        long kvCacheBytes,
        int blockTokens,
        KvType kvType,
        int maxModelLength,
        int maxSequences,
        int maxBatchedTokens,
        int maxWaiting,
        boolean prefixCaching,
        boolean sleepMode,
        boolean holdRequestsWhileAsleep,
        boolean recomputeFailedLoads,
        boolean poisonWokenMemory) {
    /** Far beyond what an engine could answer in time. */
    private static final int MAX_REQUESTS = 1_000_000;

    /** Checks the ranges; the message names the option as {@code dormouse serve} spells it. */
    public EngineConfig {
        require(blockTokens >= 1, "--block-size", blockTokens, "at least 1");
        require(maxModelLength >= 2, "--max-model-len", maxModelLength, "at least 2");
        require(
                maxSequences >= 1 && maxSequences <= MAX_REQUESTS,
                "--max-num-seqs",
                maxSequences,
                "between 1 and " + MAX_REQUESTS);
        require(
                maxBatchedTokens >= maxSequences,
                "--max-num-batched-tokens",
                maxBatchedTokens,
                "at least --max-num-seqs, which is " + maxSequences);
        require(
                maxWaiting >= 0 && maxWaiting <= MAX_REQUESTS,
                "--max-num-waiting",
                maxWaiting,
                "between 0 and " + MAX_REQUESTS);
    }

    private static void require(boolean holds, String option, int value, String range) {
        if (!holds) {
            throw new IllegalArgumentException(option + " is " + value + ", but must be " + range);
        }
    }
}
