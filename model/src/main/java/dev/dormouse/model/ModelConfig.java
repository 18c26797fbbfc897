package dev.dormouse.model;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

import java.nio.file.Path;
import java.util.List;

/**
 * Extents and constants of a model of the Llama or a Qwen architecture.
 *
 * @param name the model's own name, from the file
 * @param architecture llama.cpp's name of the architecture: {@code llama}, {@code qwen2} or {@code
 *     qwen3}
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
 * @param ropeDivisors what the rotary embedding's frequencies are divided by, one for each pair of
 *     rotated elements; empty for 1
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
        float rmsEpsilon,
        List<Double> ropeDivisors) {
    /** Copies the divisors. */
    public ModelConfig {
        ropeDivisors = List.copyOf(ropeDivisors);
    }

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
                rmsEpsilon,
                ropeDivisors);
    }

    /** The shape of a KV cache for this model. */
    public KvCacheShape kvCacheShape(int blockTokens, KvType type) {
        return new KvCacheShape(layers, kvHeads, headDimension, blockTokens, type);
    }

    /**
     * Checks that the forward pass can compute with these extents.
     *
     * @param path of the model, for the message
     * @throws ModelException if it cannot
     */
    void check(Path path) {
        if (heads % kvHeads != 0) {
            throw refused(path, heads + " heads with " + kvHeads + " KV heads", "a multiple");
        }
        requireBlocks(path, "head dimension", headDimension);
        requireBlocks(path, "embedding length", embeddingLength);
        requireBlocks(path, "feed-forward length", feedForwardLength);
        if (ropeDimensions % 2 != 0 || ropeDimensions > headDimension) {
            throw refused(
                    path,
                    ropeDimensions + " rotated dimensions",
                    "an even number up to the head dimension " + headDimension);
        }
    }

    private static void requireBlocks(Path path, String what, int elements) {
        if (elements == 0 || elements % BLOCK != 0) {
            throw refused(path, what + " " + elements, "a positive multiple of " + BLOCK);
        }
    }

    static ModelException refused(Path path, String found, String supported) {
        return new ModelException(
                "open model %s: it has %s, supported is %s".formatted(path, found, supported));
    }
}
