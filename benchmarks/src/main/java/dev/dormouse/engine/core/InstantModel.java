package dev.dormouse.engine.core;

import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** A model whose steps take no time: all logits are zero. */
final class InstantModel implements LanguageModel {
    private static final int VOCABULARY = 64;
    private static final int HEAD = 32;

    private final float[] logits;

    /**
     * @param mostRows whose logits a step may ask for
     */
    InstantModel(int mostRows) {
        logits = new float[mostRows * VOCABULARY];
    }

    @Override
    public ModelConfig config() {
        return new ModelConfig(
                "instant",
                "llama",
                VOCABULARY,
                HEAD,
                1,
                1,
                1,
                HEAD,
                HEAD,
                4096,
                HEAD,
                1,
                1,
                List.of());
    }

    @Override
    public int ranks() {
        return 1;
    }

    @Override
    public long weightBytes(int rank) {
        return 64;
    }

    @Override
    public void loadWeights(int rank, MemorySegment target) {
        target.fill((byte) 0);
    }

    @Override
    public Logits forward(List<SequenceChunk> batch, List<RankView> ranks) {
        int rows = batch.stream().mapToInt(SequenceChunk::logitRows).sum();
        return new Logits(logits, rows, VOCABULARY);
    }

    @Override
    public void close() {}
}
