package dev.dormouse.simulation;

import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.PagedKv;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A tiny model in which everything depends on everything before it: K and V of each head, layer and
 * position are hashes of the weights, the token, and the K and V of all earlier positions, read
 * from the paged cache. A byte that is wrong, stale or missing therefore changes every later token.
 *
 * <p>The heads are dealt to the ranks as in a real model, and the logits are a hash over all heads,
 * so that no rank's KV is without effect.
 */
final class ChainModel implements LanguageModel {
    static final int VOCABULARY = 61;
    static final int LAYERS = 2;
    static final int HEAD_DIMENSION = 4;
    static final int CONTEXT = 4096;

    private static final int WEIGHT_LONGS = 8;
    private static final long WEIGHT_SEED = 0x5eed;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final long FINGERPRINT = fingerprint();

    private final int kvHeads;
    private final int ranks;
    private final HeadStates states;

    /**
     * A model for an engine.
     *
     * @param kvHeads dealt to the ranks in order, and repeated if there are fewer than ranks
     */
    ChainModel(int kvHeads, int ranks) {
        this.kvHeads = kvHeads;
        this.ranks = ranks;
        this.states = new HeadStates(kvHeads, ranks);
    }

    /** What an engine that computes everything itself generates greedily after a prompt. */
    static List<Integer> oracle(int kvHeads, List<Integer> prompt, int count) {
        long[][][] keys = new long[kvHeads][LAYERS][prompt.size() + count];
        long[] last = new long[kvHeads];
        List<Integer> tokens = new ArrayList<>(prompt);
        float[] row = new float[VOCABULARY];
        for (int position = 0; position < prompt.size() + count - 1; position++) {
            for (int head = 0; head < kvHeads; head++) {
                last[head] = addKeys(keys[head], head, position, tokens.get(position));
            }
            if (position == tokens.size() - 1) {
                fillRow(row, 0, HeadStates.combine(last));
                int best = 0;
                for (int token = 1; token < VOCABULARY; token++) {
                    best = row[token] > row[best] ? token : best;
                }
                tokens.add(best);
            }
        }
        return List.copyOf(tokens.subList(prompt.size(), prompt.size() + count));
    }

    @Override
    public ModelConfig config() {
        return new ModelConfig(
                "chain",
                "llama",
                VOCABULARY,
                4,
                LAYERS,
                kvHeads,
                kvHeads,
                HEAD_DIMENSION,
                4,
                CONTEXT,
                4,
                1,
                1,
                List.of());
    }

    @Override
    public int ranks() {
        return ranks;
    }

    @Override
    public long weightBytes(int rank) {
        return WEIGHT_LONGS * Long.BYTES;
    }

    @Override
    public void loadWeights(int rank, MemorySegment target) {
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            target.setAtIndex(LONG, i, mix(WEIGHT_SEED + i));
        }
    }

    @Override
    public Logits forward(List<SequenceChunk> batch, List<RankView> views) {
        int rows = 0;
        for (int rank = 0; rank < ranks; rank++) {
            rows = forward(batch, rank, views.get(rank).weights(), views.get(rank).kv());
        }
        return states.logits(rows);
    }

    private int forward(List<SequenceChunk> batch, int rank, MemorySegment weights, PagedKv kv) {
        checkBlocks(batch, kv);
        int firstHead = rank * kvHeads / ranks;
        long fingerprint = 0;
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            fingerprint = mix(fingerprint ^ weights.getAtIndex(LONG, i));
        }
        int rows = 0;
        for (SequenceChunk chunk : batch) {
            for (int head = 0; head < kv.shape().kvHeads(); head++) {
                long state = 0;
                for (int i = 0; i < chunk.tokens().length; i++) {
                    state = position(fingerprint, firstHead, head, chunk, i, kv);
                }
                if (chunk.logitRows() > 0) {
                    states.put(rank, rows, firstHead + head, state);
                }
            }
            rows += chunk.logitRows() > 0 ? 1 : 0;
        }
        return rows;
    }

    @Override
    public void close() {}

    private static long position(
            long fingerprint, int firstHead, int head, SequenceChunk chunk, int index, PagedKv kv) {
        int position = chunk.start() + index;
        long state = fingerprint;
        for (int layer = 0; layer < LAYERS; layer++) {
            MemorySegment cache = kv.layers().get(layer);
            long fold = 0;
            for (int earlier = 0; earlier < position; earlier++) {
                long slot = slot(kv.shape(), chunk.blocks(), head, earlier);
                fold = fold(fold, cache.getAtIndex(LONG, slot), cache.getAtIndex(LONG, slot + 1));
            }
            long key = key(state, fold, chunk.tokens()[index], position, layer, firstHead + head);
            long slot = slot(kv.shape(), chunk.blocks(), head, position);
            cache.setAtIndex(LONG, slot, key);
            cache.setAtIndex(LONG, slot + 1, mix(key));
            state = mix(state + key);
        }
        return state;
    }

    /** The index of a position's K, with its V behind it, in longs: {@code [head][token][K, V]}. */
    private static long slot(KvCacheShape shape, int[] blocks, int head, int position) {
        int blockTokens = shape.blockTokens();
        long block = blocks[position / blockTokens];
        return ((block * shape.kvHeads() + head) * blockTokens + position % blockTokens) * 2;
    }

    private static long addKeys(long[][] keys, int head, int position, int token) {
        long state = FINGERPRINT;
        for (int layer = 0; layer < LAYERS; layer++) {
            long fold = 0;
            for (int earlier = 0; earlier < position; earlier++) {
                fold = fold(fold, keys[layer][earlier], mix(keys[layer][earlier]));
            }
            keys[layer][position] = key(state, fold, token, position, layer, head);
            state = mix(state + keys[layer][position]);
        }
        return state;
    }

    private static long fingerprint() {
        long fingerprint = 0;
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            fingerprint = mix(fingerprint ^ mix(WEIGHT_SEED + i));
        }
        return fingerprint;
    }

    static void fillRow(float[] values, int from, long state) {
        for (int token = 0; token < VOCABULARY; token++) {
            values[from + token] = (mix(state + token) >>> 40) * 0x1p-22f;
        }
    }

    private static long key(long state, long fold, int token, int position, int layer, int head) {
        return mix(
                mix(state ^ fold) + 31L * token + 1009L * position + 7L * layer + 524_287L * head);
    }

    private static long fold(long fold, long k, long v) {
        return mix(fold ^ k) + v;
    }

    static long mix(long value) {
        long z = value + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    /** A block that one sequence writes must belong to no other. */
    private static void checkBlocks(List<SequenceChunk> batch, PagedKv kv) {
        int blockTokens = kv.shape().blockTokens();
        Map<Integer, Integer> users = new HashMap<>();
        for (SequenceChunk chunk : batch) {
            int last = (chunk.start() + chunk.tokens().length - 1) / blockTokens;
            for (int i = 0; i <= last; i++) {
                int block = chunk.blocks()[i];
                if (block < 0 || block >= kv.blocks()) {
                    throw new Violation("block " + block + " of " + kv.blocks() + " is computed");
                }
                users.merge(block, 1, Integer::sum);
            }
        }
        for (SequenceChunk chunk : batch) {
            int last = (chunk.start() + chunk.tokens().length - 1) / blockTokens;
            for (int i = chunk.start() / blockTokens; i <= last; i++) {
                if (users.getOrDefault(chunk.blocks()[i], 0) != 1) {
                    throw new Violation("block " + chunk.blocks()[i] + " is written and shared");
                }
            }
        }
    }
}
