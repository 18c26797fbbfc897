package dev.dormouse.model;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * A model's weights and a KV cache full of NaN, so that what was never written shows in the logits.
 */
public final class ModelMemory implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final LanguageModel model;
    private final MemorySegment weights;
    private final PagedKv kv;

    /** Loads the weights. */
    public ModelMemory(LanguageModel model, int blocks, int blockTokens, KvType type) {
        this.model = model;
        weights = arena.allocate(model.weightBytes(), 64);
        model.loadWeights(weights);
        KvCacheShape shape = model.config().kvCacheShape(blockTokens, type);
        List<MemorySegment> layers = new ArrayList<>();
        for (int i = 0; i < shape.layers(); i++) {
            layers.add(arena.allocate(blocks * shape.blockBytes(), 64).fill((byte) 0xFF));
        }
        kv = new PagedKv(shape, blocks, layers);
    }

    public MemorySegment weights() {
        return weights;
    }

    public PagedKv kv() {
        return kv;
    }

    /** All blocks, shuffled. */
    public int[] blocks(SplittableRandom random) {
        int[] blocks = IntStream.range(0, kv.blocks()).toArray();
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
        return model.forward(List.of(batch), weights, kv);
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
