package dev.dormouse.model;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A decoder-only language model whose weights and KV cache live in memory that its caller owns.
 *
 * <p>It is split among one or more tensor parallel ranks, each with memory of its own for its share
 * of the weights and of the KV heads. The ranks compute a step together.
 *
 * <p>The model keeps no reference to weights or KV cache between calls, so both may go away (sleep)
 * and come back. Not thread-safe: one thread at a time calls {@link #loadWeights}, {@link #forward}
 * and {@link #close}; the model's own compute threads help it.
 */
public interface LanguageModel extends AutoCloseable {
    /** The model's extents and constants, over all ranks. */
    ModelConfig config();

    /** How many ranks share the model; numbered from 0. */
    int ranks();

    /** The shape of each rank's KV cache. */
    default KvCacheShape kvCacheShape(int blockTokens, KvType type) {
        return config().ofRank(ranks()).kvCacheShape(blockTokens, type);
    }

    /** Bytes that {@link #loadWeights} writes for a rank; a multiple of 64. */
    long weightBytes(int rank);

    /**
     * Writes a rank's share of the weights, in the layout that {@link #forward} reads, from the
     * model's file.
     *
     * @param target exactly {@link #weightBytes} bytes, 64-byte aligned, of a shared arena
     * @throws ModelException if the file's tensor data no longer match the checksums taken at the
     *     rank's first load; the target is not usable then
     * @throws IllegalArgumentException if the target is of another size or kind
     */
    void loadWeights(int rank, MemorySegment target);

    /**
     * Computes one step for a batch of sequences: writes the K and V of every token into the
     * caches, and returns the logits that were asked for.
     *
     * @param batch chunks of distinct sequences; blocks that chunks share are only read
     * @param ranks the memory of every rank, in order; regions of shared arenas, and as many blocks
     *     in each cache
     * @return a view that is valid until the next call: the chunks' logit rows one behind the
     *     other, in batch order
     * @throws IllegalArgumentException if a token, a block or a position is out of range, a block
     *     that the step writes is used elsewhere in it, or memory is of the wrong size or kind;
     *     nothing was written then
     */
    Logits forward(List<SequenceChunk> batch, List<RankView> ranks);

    /** Ends the compute threads. Idempotent. */
    @Override
    void close();
}
