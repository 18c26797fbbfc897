package dev.dormouse.model;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A decoder-only language model whose weights and KV cache live in memory that its caller owns.
 *
 * <p>The model keeps no reference to weights or KV cache between calls, so both may go away (sleep)
 * and come back. Not thread-safe: one thread at a time calls {@link #loadWeights}, {@link #forward}
 * and {@link #close}; the model's own compute threads help it.
 */
public interface LanguageModel extends AutoCloseable {
    /** The model's extents and constants. */
    ModelConfig config();

    /** Bytes that {@link #loadWeights} writes; a multiple of 64. */
    long weightBytes();

    /**
     * Writes the weights, in the layout that {@link #forward} reads, from the model's file.
     *
     * @param target exactly {@link #weightBytes()} bytes, 64-byte aligned, of a shared arena
     * @throws ModelException if the file's tensor data no longer match the checksums taken at the
     *     first load; the target is not usable then
     * @throws IllegalArgumentException if the target is of another size or kind
     */
    void loadWeights(MemorySegment target);

    /**
     * Computes one step for a batch of sequences: writes the K and V of every token into the cache,
     * and returns the logits that were asked for.
     *
     * @param batch chunks of distinct sequences; blocks that chunks share are only read
     * @param weights what {@link #loadWeights} filled
     * @param kv regions of a shared arena
     * @return a view that is valid until the next call: the chunks' logit rows one behind the
     *     other, in batch order
     * @throws IllegalArgumentException if a token, a block or a position is out of range, a block
     *     that the step writes is used elsewhere in it, or memory is of the wrong size or kind;
     *     nothing was written then
     */
    Logits forward(List<SequenceChunk> batch, MemorySegment weights, PagedKv kv);

    /** Ends the compute threads. Idempotent. */
    @Override
    void close();
}
