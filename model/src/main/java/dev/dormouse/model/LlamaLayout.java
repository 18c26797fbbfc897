package dev.dormouse.model;

import dev.dormouse.model.kernel.PackedMatrix;
import java.util.List;
import java.util.Optional;

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
     * The weights of a transformer layer; vectors of floats by their offset.
     *
     * @param queryKeyValue three matrices
     * @param biases what is added to the outputs of all three, where the model has it
     * @param headNorms norms of the queries' and the keys' heads, where the model has them
     * @param output the projection after attention
     * @param gateUp two matrices
     */
    record Layer(
            long attentionNorm,
            List<PackedMatrix> queryKeyValue,
            Optional<Long> biases,
            Optional<HeadNorms> headNorms,
            List<PackedMatrix> output,
            long feedForwardNorm,
            List<PackedMatrix> gateUp,
            List<PackedMatrix> down) {}

    /** Where the norms start that each head of the queries, and of the keys, is scaled by. */
    record HeadNorms(long query, long key) {}
}
