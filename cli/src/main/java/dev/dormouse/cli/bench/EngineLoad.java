package dev.dormouse.cli.bench;

import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.PagedKv;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** Sequences of random tokens with a KV cache of their own, which a model computes. */
final class EngineLoad implements AutoCloseable {
    private static final int BLOCK_TOKENS = 16;
    private static final int CHUNK_TOKENS = 512;

    private final LlamaModel model;
    private final int sequences;
    private final int blocks;
    private final Arena arena = Arena.ofShared();
    private final List<RankView> views;
    private final SplittableRandom random = new SplittableRandom(1);

    /**
     * Makes room, whose pages are touched.
     *
     * @param weights of each rank
     * @param tokens that each sequence may have
     */
    EngineLoad(LlamaModel model, List<MemorySegment> weights, int sequences, int tokens) {
        this.model = model;
        this.sequences = sequences;
        blocks = Math.ceilDiv(tokens, BLOCK_TOKENS);
        views = weights.stream().map(ofRank -> new RankView(ofRank, cache())).toList();
    }

    private PagedKv cache() {
        KvCacheShape shape = model.kvCacheShape(BLOCK_TOKENS, KvType.F16);
        int all = sequences * blocks;
        List<MemorySegment> layers =
                IntStream.range(0, shape.layers())
                        .mapToObj(_ -> arena.allocate(all * shape.blockBytes(), 64))
                        .toList();
        return new PagedKv(shape, all, layers);
    }

    /** Bytes that a token has in the caches of all ranks. */
    static long kvTokenBytes(LlamaModel model) {
        return model.kvCacheShape(1, KvType.F16).blockBytesAllLayers() * model.ranks();
    }

    /** Gives every sequence a prompt, one sequence after the other. */
    void prefill(int tokens) {
        for (int sequence = 0; sequence < sequences; sequence++) {
            for (int from = 0; from < tokens; from += CHUNK_TOKENS) {
                int to = Math.min(tokens, from + CHUNK_TOKENS);
                var _ =
                        model.forward(
                                List.of(chunk(sequence, prompt(to - from), from, to == tokens)),
                                views);
            }
        }
    }

    /**
     * Decodes greedily, all sequences at once, from one random token each.
     *
     * @param depth tokens that each sequence has
     */
    void decode(int depth, int steps) {
        int[] next = prompt(sequences);
        for (int step = 0; step < steps; step++) {
            List<SequenceChunk> batch = new ArrayList<>();
            for (int i = 0; i < sequences; i++) {
                batch.add(chunk(i, new int[] {next[i]}, depth + step, true));
            }
            Logits logits = model.forward(batch, views);
            for (int i = 0; i < sequences; i++) {
                next[i] = argmax(logits, i);
            }
        }
    }

    private SequenceChunk chunk(int sequence, int[] tokens, int from, boolean logits) {
        int[] table = IntStream.range(sequence * blocks, (sequence + 1) * blocks).toArray();
        return new SequenceChunk(tokens, from, table, logits ? 1 : 0);
    }

    private int[] prompt(int tokens) {
        return random.ints(tokens, 0, model.config().vocabularySize()).toArray();
    }

    private static int argmax(Logits logits, int row) {
        int from = logits.offset(row);
        int best = from;
        for (int i = from; i < from + logits.vocabularySize(); i++) {
            best = logits.values()[i] > logits.values()[best] ? i : best;
        }
        return best - from;
    }

    @Override
    public void close() {
        arena.close();
    }
}
