package dev.dormouse.model;

/**
 * The shape of a paged KV cache.
 *
 * <p>There is one region per attention layer. A region is {@code blocks} consecutive KV blocks; a
 * block holds {@code blockTokens} tokens as {@code [kvHead][token][K then V]}, K and V packed in
 * the content dimension. This is vLLM's layout {@code LBHNC}.
 *
 * @param layers attention layers, each with a region of its own
 * @param kvHeads KV heads held by this rank
 * @param headDimension elements of K, and of V, per head and token
 * @param blockTokens tokens per KV block
 * @param type element type
 */
public record KvCacheShape(
        int layers, int kvHeads, int headDimension, int blockTokens, KvType type) {
    /** Checks that every extent is positive. */
    public KvCacheShape {
        if (layers < 1 || kvHeads < 1 || headDimension < 1 || blockTokens < 1) {
            throw new IllegalArgumentException(
                    "KV cache shape: every extent must be positive, but layers="
                            + layers
                            + " kvHeads="
                            + kvHeads
                            + " headDimension="
                            + headDimension
                            + " blockTokens="
                            + blockTokens);
        }
    }

    /** Bytes of one block in one layer's region. */
    public long blockBytes() {
        return (long) kvHeads * blockTokens * 2 * headDimension * type.bytes();
    }

    /** Bytes of one block over all layers. */
    public long blockBytesAllLayers() {
        return blockBytes() * layers;
    }
}
