package dev.dormouse.model;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;
import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Which part of a model one of its tensor parallel ranks has, as in Megatron-LM: query and KV heads
 * and rows of the feed-forward network in equal shares, in order, and tokens of the vocabulary by
 * panels. If there are more ranks than KV heads, neighbouring ranks have the same one.
 *
 * @param whole the model's extents
 * @param own the rank's extents
 * @param rank from 0
 * @param ranks how many there are
 */
record Shard(ModelConfig whole, ModelConfig own, int rank, int ranks) {
    /**
     * The parts of all ranks.
     *
     * @throws IllegalArgumentException if the model cannot be dealt to that many ranks, with the
     *     numbers that do not fit and those that would
     */
    static List<Shard> of(ModelConfig whole, int ranks) {
        if (!isDealt(whole, ranks)) {
            throw new IllegalArgumentException(
                    "tensor parallel size %d does not fit %d heads, %d KV heads and a feed-forward length of %d (%d blocks of %d); this model can have %s"
                            .formatted(
                                    ranks,
                                    whole.heads(),
                                    whole.kvHeads(),
                                    whole.feedForwardLength(),
                                    whole.feedForwardLength() / BLOCK,
                                    BLOCK,
                                    IntStream.rangeClosed(1, whole.heads())
                                            .filter(size -> isDealt(whole, size))
                                            .boxed()
                                            .toList()));
        }
        ModelConfig own = whole.ofRank(ranks);
        return IntStream.range(0, ranks)
                .mapToObj(rank -> new Shard(whole, own, rank, ranks))
                .toList();
    }

    private static boolean isDealt(ModelConfig whole, int ranks) {
        return ranks >= 1
                && whole.heads() % ranks == 0
                && (whole.kvHeads() % ranks == 0 || ranks % whole.kvHeads() == 0)
                && whole.feedForwardLength() / BLOCK % ranks == 0
                && panels(whole) >= ranks;
    }

    int firstHead() {
        return rank * own.heads();
    }

    int firstKvHead() {
        return (int) ((long) rank * whole.kvHeads() / ranks);
    }

    int firstFeedForward() {
        return rank * own.feedForwardLength();
    }

    /** The first token whose rows of embedding and head are the rank's. */
    int firstToken() {
        return firstTokenOf(rank);
    }

    /** How many tokens those are. */
    int tokens() {
        return firstTokenOf(rank + 1) - firstToken();
    }

    private int firstTokenOf(int any) {
        long panel = (long) any * panels(whole) / ranks;
        return (int) Math.min(panel * PANEL, whole.vocabularySize());
    }

    private static int panels(ModelConfig whole) {
        return Math.ceilDiv(whole.vocabularySize(), PANEL);
    }
}
