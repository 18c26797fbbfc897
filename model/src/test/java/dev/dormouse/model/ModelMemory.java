package dev.dormouse.model;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * The weights of a model's ranks, and KV caches full of NaN, so that what was never written shows
 * in the logits.
 */
public final class ModelMemory implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final LanguageModel model;
    private final List<RankView> ranks = new ArrayList<>();

    /** Loads the weights. */
    public ModelMemory(LanguageModel model, int blocks, int blockTokens, KvType type) {
        this.model = model;
        KvCacheShape shape = model.kvCacheShape(blockTokens, type);
        for (int rank = 0; rank < model.ranks(); rank++) {
            MemorySegment weights = arena.allocate(model.weightBytes(rank), 64);
            model.loadWeights(rank, weights);
            List<MemorySegment> layers = new ArrayList<>();
            for (int i = 0; i < shape.layers(); i++) {
                layers.add(arena.allocate(blocks * shape.blockBytes(), 64).fill((byte) 0xFF));
            }
            ranks.add(new RankView(weights, new PagedKv(shape, blocks, layers)));
        }
    }

    /** The first rank's weights. */
    public MemorySegment weights() {
        return ranks.getFirst().weights();
    }

    /** The first rank's cache. */
    public PagedKv kv() {
        return ranks.getFirst().kv();
    }

    /** The memory of all ranks. */
    public List<RankView> ranks() {
        return ranks;
    }

    /** All blocks, shuffled. */
    public int[] blocks(SplittableRandom random) {
        int[] blocks = IntStream.range(0, kv().blocks()).toArray();
        for (int i = blocks.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            int block = blocks[i];
            blocks[i] = blocks[j];
            blocks[j] = block;
        }
        return blocks;
    }

    /** Runs a step. */
    Logits step(SequenceChunk... batch) {
        return model.forward(List.of(batch), ranks);
    }

    /** Runs a step and copies its logit rows. */
    public List<float[]> forward(SequenceChunk... batch) {
        Logits logits = step(batch);
        List<float[]> rows = new ArrayList<>();
        for (int row = 0; row < logits.rows(); row++) {
            float[] copy = new float[logits.vocabularySize()];
            System.arraycopy(logits.values(), logits.offset(row), copy, 0, copy.length);
            rows.add(copy);
        }
        return rows;
    }

    @Override
    public void close() {
        arena.close();
    }
}
