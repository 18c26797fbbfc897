package dev.dormouse.cli.bench;

import dev.dormouse.model.ModelConfig;

/**
 * What is computed in a run of {@code dormouse bench engine}.
 *
 * @param name such as {@code decode 1 after 960}
 * @param tokens of all sequences together
 * @param operations multiplications and additions of matrices and attention
 * @param readBytes weights and KV cache that the steps read, each byte once per step
 */
record EngineWork(String name, int tokens, double operations, double readBytes) {
    /**
     * A prompt in one step.
     *
     * @param tokens of the prompt
     * @param weightBytes of all ranks. A model with an output matrix of its own has an embedding
     *     among them that no step reads as a whole.
     */
    static EngineWork prefill(ModelConfig config, long weightBytes, int tokens) {
        return new EngineWork(
                "prefill " + tokens,
                tokens,
                2.0 * layerWeights(config) * tokens
                        + 2.0 * headWeights(config)
                        + attention(config, 0, tokens),
                weightBytes);
    }

    /**
     * Single tokens of some sequences at once.
     *
     * @param sequences in each step
     * @param depth tokens that each sequence has before the first step
     * @param steps one after the other
     * @param kvTokenBytes of a token's K and V over all layers and ranks
     */
    static EngineWork decode(
            ModelConfig config,
            long weightBytes,
            int sequences,
            int depth,
            int steps,
            long kvTokenBytes) {
        return new EngineWork(
                "decode " + sequences + (depth == 0 ? "" : " after " + depth),
                sequences * steps,
                sequences
                        * (2.0 * (layerWeights(config) + headWeights(config)) * steps
                                + attention(config, depth, steps)),
                (double) weightBytes * steps
                        + (double) sequences * kvTokenBytes * positions(depth, steps));
    }

    /** Weights that each token is multiplied by before the output matrix. */
    private static long layerWeights(ModelConfig config) {
        long heads = (long) config.heads() * config.headDimension();
        long kvHeads = (long) config.kvHeads() * config.headDimension();
        return (long) config.layers()
                * config.embeddingLength()
                * (2 * heads + 2 * kvHeads + 3L * config.feedForwardLength());
    }

    private static long headWeights(ModelConfig config) {
        return (long) config.vocabularySize() * config.embeddingLength();
    }

    /** Queries with keys, and weights with values. */
    private static double attention(ModelConfig config, int depth, int tokens) {
        return 4.0
                * config.layers()
                * config.heads()
                * config.headDimension()
                * positions(depth, tokens);
    }

    /** How many positions the tokens behind {@code depth} see, all together. */
    private static long positions(int depth, int tokens) {
        return (long) tokens * depth + (long) tokens * (tokens + 1) / 2;
    }
}
