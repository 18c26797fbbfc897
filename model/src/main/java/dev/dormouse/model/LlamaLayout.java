package dev.dormouse.model;

import dev.dormouse.model.kernel.PackedMatrix;
import java.util.List;

/**
 * Where the forward pass finds its weights in a rank's weight region. All offsets are multiples of
 * 64.
 *
 * @param firstToken the token of the first row of embedding and head
 * @param embedding the token embedding
 * @param layers the transformer layers
 * @param outputNorm where the last norm starts
 * @param head the projection to logits; the embedding where the model has none of its own
 * @param lengthBytes bytes of the region
 */
record LlamaLayout(
        int firstToken,
        PackedMatrix embedding,
        List<Layer> layers,
        long outputNorm,
        List<PackedMatrix> head,
        long lengthBytes) {

    /**
     * The weights of a transformer layer; norms, vectors of floats, by their offset.
     *
     * @param queryKeyValue three matrices
     * @param output the projection after attention
     * @param gateUp two matrices
     */
    record Layer(
            long attentionNorm,
            List<PackedMatrix> queryKeyValue,
            List<PackedMatrix> output,
            long feedForwardNorm,
            List<PackedMatrix> gateUp,
            List<PackedMatrix> down) {}
}
