package dev.dormouse.engine.core;

import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelException;
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
 * A tiny model that computes with hashes: each position's K and V depend on the weights, on the
 * token, and on the K and V of all positions before it, read from the paged cache. A byte that is
 * wrong, stale or missing therefore changes every later token, in every layer. Every rank has it
 * all.
 */
final class HashModel implements LanguageModel {
    static final int VOCABULARY = 61;
    static final int LAYERS = 2;
    static final int BLOCK_TOKENS = 4;
    static final KvCacheShape SHAPE = new KvCacheShape(LAYERS, 1, 4, BLOCK_TOKENS, KvType.F16);

    private static final int WEIGHT_LONGS = 32;
    private static final long WEIGHT_SEED = 0x5eed;
    private static final int TOKEN_LONGS = 2;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    /** What {@link #forward} makes of the right weights. */
    private static final long FINGERPRINT = fingerprint();

    private final float[] logits = new float[4096 * VOCABULARY];
    private final int[] loads;
    private int failingForwards;
    private int failingLoad = -1;
    private int hookedRank = -1;
    private Runnable onLoad = () -> {};
    private boolean closed;
    private final List<Integer> chunkSizes = new ArrayList<>();

    HashModel(int ranks) {
        loads = new int[ranks];
    }

    /** Times that the first rank's weights were loaded. */
    int loads() {
        return loads(0);
    }

    /** Times that a rank's weights were loaded. */
    int loads(int rank) {
        return loads[rank];
    }

    boolean isClosed() {
        return closed;
    }

    /** Sizes of all chunks so far. */
    List<Integer> chunkSizes() {
        return chunkSizes;
    }

    void failForwards(int count) {
        failingForwards = count;
    }

    void failNextLoad(int rank) {
        failingLoad = rank;
    }

    /** Runs {@code hook} in each load of a rank, while its weights are in use. */
    void onLoad(int rank, Runnable hook) {
        hookedRank = rank;
        onLoad = hook;
    }

    @Override
    public ModelConfig config() {
        return new ModelConfig(
                "hash", "llama", VOCABULARY, 4, LAYERS, 1, 1, 4, 4, 4096, 4, 1, 1, List.of());
    }

    @Override
    public int ranks() {
        return loads.length;
    }

    @Override
    public long weightBytes(int rank) {
        return WEIGHT_LONGS * Long.BYTES;
    }

    @Override
    public void loadWeights(int rank, MemorySegment target) {
        if (failingLoad == rank) {
            failingLoad = -1;
            throw new ModelException("load weights: the file's checksum has changed");
        }
        loads[rank]++;
        if (rank == hookedRank) {
            onLoad.run();
        }
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            target.setAtIndex(ValueLayout.JAVA_LONG, i, mix(WEIGHT_SEED + i));
        }
    }

    @Override
    public Logits forward(List<SequenceChunk> batch, List<RankView> ranks) {
        if (failingForwards > 0) {
            failingForwards--;
            throw new ModelException("forward: made to fail");
        }
        batch.forEach(chunk -> chunkSizes.add(chunk.tokens().length));
        List<Long> states = states(batch, ranks.getFirst());
        for (RankView other : ranks.subList(1, ranks.size())) {
            if (!states(batch, other).equals(states)) {
                states = states.stream().map(HashModel::mix).toList(); // a wrong token
            }
        }
        for (int row = 0; row < states.size(); row++) {
            fillRow(logits, row * VOCABULARY, states.get(row));
        }
        return new Logits(logits, states.size(), VOCABULARY);
    }

    /** What the rows of a step whose logits are asked for come from. */
    private static List<Long> states(List<SequenceChunk> batch, RankView rank) {
        MemorySegment weights = rank.weights();
        PagedKv kv = rank.kv();
        checkSharing(batch, kv);
        long fingerprint = 0;
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            fingerprint = mix(fingerprint ^ weights.getAtIndex(ValueLayout.JAVA_LONG, i));
        }
        List<Long> states = new ArrayList<>();
        for (SequenceChunk chunk : batch) {
            for (int i = 0; i < chunk.tokens().length; i++) {
                long state = position(fingerprint, chunk.tokens()[i], chunk.start() + i, chunk, kv);
                if (i >= chunk.tokens().length - chunk.logitRows()) {
                    states.add(state);
                }
            }
        }
        return states;
    }

    @Override
    public void close() {
        closed = true;
    }

    private static long position(
            long fingerprint, int token, int position, SequenceChunk chunk, PagedKv kv) {
        long state = fingerprint;
        for (int layer = 0; layer < LAYERS; layer++) {
            MemorySegment cache = kv.layers().get(layer);
            long fold = 0;
            for (int earlier = 0; earlier < position; earlier++) {
                long slot = slot(chunk.blocks(), earlier);
                fold = fold(fold, cache.getAtIndex(LONG, slot), cache.getAtIndex(LONG, slot + 1));
            }
            long k = key(state, fold, token, position, layer);
            long slot = slot(chunk.blocks(), position);
            cache.setAtIndex(LONG, slot, k);
            cache.setAtIndex(LONG, slot + 1, mix(k));
            state = mix(state + k);
        }
        return state;
    }

    private static long slot(int[] blocks, int position) {
        long block = blocks[position / BLOCK_TOKENS];
        return (block * BLOCK_TOKENS + position % BLOCK_TOKENS) * TOKEN_LONGS;
    }

    /** The K of every layer and position of a sequence, as the model computes them. */
    static long[][] keys(List<Integer> tokens) {
        long[][] keys = new long[LAYERS][tokens.size()];
        for (int position = 0; position < tokens.size(); position++) {
            addKeys(keys, position, tokens.get(position));
        }
        return keys;
    }

    /** What the model generates greedily after a prompt, computed without any cache or engine. */
    static List<Integer> oracle(List<Integer> prompt, int count) {
        long[][] keys = new long[LAYERS][prompt.size() + count];
        long state = 0;
        for (int position = 0; position < prompt.size(); position++) {
            state = addKeys(keys, position, prompt.get(position));
        }
        List<Integer> output = new ArrayList<>();
        float[] row = new float[VOCABULARY];
        while (output.size() < count) {
            fillRow(row, 0, state);
            int best = 0;
            for (int token = 1; token < VOCABULARY; token++) {
                best = row[token] > row[best] ? token : best;
            }
            state = addKeys(keys, prompt.size() + output.size(), best);
            output.add(best);
        }
        return List.copyOf(output);
    }

    /** The logits behind each position of a sequence, computed without any cache or engine. */
    static float[][] logits(List<Integer> tokens) {
        long[][] keys = new long[LAYERS][tokens.size()];
        float[][] rows = new float[tokens.size()][VOCABULARY];
        for (int position = 0; position < tokens.size(); position++) {
            fillRow(rows[position], 0, addKeys(keys, position, tokens.get(position)));
        }
        return rows;
    }

    private static long addKeys(long[][] keys, int position, int token) {
        long state = FINGERPRINT;
        for (int layer = 0; layer < LAYERS; layer++) {
            long fold = 0;
            for (int earlier = 0; earlier < position; earlier++) {
                fold = fold(fold, keys[layer][earlier], mix(keys[layer][earlier]));
            }
            keys[layer][position] = key(state, fold, token, position, layer);
            state = mix(state + keys[layer][position]);
        }
        return state;
    }

    /** Writes the K and V of {@code tokens[from..to)} as another engine's read would. */
    static void write(
            MemorySegment layerCache, int layer, List<Integer> tokens, int[] blocks, int from) {
        long[][] keys = keys(tokens);
        for (int position = from; position < tokens.size(); position++) {
            long slot = slot(blocks, position);
            layerCache.setAtIndex(LONG, slot, keys[layer][position]);
            layerCache.setAtIndex(LONG, slot + 1, mix(keys[layer][position]));
        }
    }

    private static long fingerprint() {
        long fingerprint = 0;
        for (int i = 0; i < WEIGHT_LONGS; i++) {
            fingerprint = mix(fingerprint ^ mix(WEIGHT_SEED + i));
        }
        return fingerprint;
    }

    private static void fillRow(float[] values, int from, long state) {
        for (int token = 0; token < VOCABULARY; token++) {
            values[from + token] = (mix(state + token) >>> 40) * 0x1p-22f;
        }
    }

    private static long key(long state, long fold, int token, int position, int layer) {
        return mix(mix(state ^ fold) + 31L * token + 1009L * position + layer);
    }

    private static long fold(long fold, long k, long v) {
        return mix(fold ^ k) + v;
    }

    private static long mix(long value) {
        long z = value + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    /** A block that one chunk writes must belong to no other chunk. */
    private static void checkSharing(List<SequenceChunk> batch, PagedKv kv) {
        Map<Integer, Integer> users = new HashMap<>();
        for (SequenceChunk chunk : batch) {
            int last = (chunk.start() + chunk.tokens().length - 1) / BLOCK_TOKENS;
            for (int i = 0; i <= last; i++) {
                int block = chunk.blocks()[i];
                if (block < 0 || block >= kv.blocks()) {
                    throw new IllegalArgumentException("block " + block + " of " + kv.blocks());
                }
                users.merge(block, 1, Integer::sum);
            }
        }
        for (SequenceChunk chunk : batch) {
            int first = chunk.start() / BLOCK_TOKENS;
            int last = (chunk.start() + chunk.tokens().length - 1) / BLOCK_TOKENS;
            for (int i = first; i <= last; i++) {
                if (users.getOrDefault(chunk.blocks()[i], 0) != 1) {
                    throw new IllegalArgumentException(
                            "block " + chunk.blocks()[i] + " is written and shared");
                }
            }
        }
    }
}
