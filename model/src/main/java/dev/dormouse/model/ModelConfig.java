package dev.dormouse.model;

/**
 * Extents and constants of a Llama architecture model.
 *
 * @param name the model's own name, from the file
 * @param architecture the file's architecture name, {@code llama}
 * @param vocabularySize rows of the embedding
 * @param embeddingLength width of the residual stream
 * @param layers transformer layers
 * @param heads query heads
 * @param kvHeads key and value heads; {@code heads} is a multiple of it (grouped-query attention)
 * @param headDimension elements per head
 * @param feedForwardLength width of the feed-forward network
 * @param contextLength the longest context the model was trained for, in tokens
 * @param ropeDimensions leading elements of each head that are rotated
 * @param ropeBase base frequency of the rotary embedding
 * @param rmsEpsilon added to the mean square before its root is taken
 */
public record ModelConfig(
        String name,
        String architecture,
        int vocabularySize,
        int embeddingLength,
        int layers,
        int heads,
        int kvHeads,
        int headDimension,
        int feedForwardLength,
        int contextLength,
        int ropeDimensions,
        float ropeBase,
        float rmsEpsilon) {
    /**
     * The extents of one of several ranks: its share of the heads and of the feed-forward network.
     * Where there are fewer KV heads than ranks, each rank has one. The vocabulary stays whole.
     */
    ModelConfig ofRank(int ranks) {
        return new ModelConfig(
                name,
                architecture,
                vocabularySize,
                embeddingLength,
                layers,
                heads / ranks,
                Math.max(1, kvHeads / ranks),
                headDimension,
                feedForwardLength / ranks,
                contextLength,
                ropeDimensions,
                ropeBase,
                rmsEpsilon);
    }

    /** The shape of a KV cache for this model. */
    public KvCacheShape kvCacheShape(int blockTokens, KvType type) {
        return new KvCacheShape(layers, kvHeads, headDimension, blockTokens, type);
    }
}
