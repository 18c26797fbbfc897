package dev.dormouse.model;

import static dev.dormouse.model.kernel.Kernels.TILE;

import dev.dormouse.model.kernel.BlockedRows;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.Lanes;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Grouped-query attention over a paged cache, with a running softmax.
 *
 * <p>The context is read in tiles of 32 positions, wherever their blocks are. A query's result is
 * the merge of its tiles' results in the order of their positions, each tile's result being made
 * from zero: so it does not matter how a sequence was cut into chunks, nor which thread took which
 * tile. All queries of the rows in a unit share the tiles that the unit reads.
 */
final class PagedAttention {
    /** Rows of a chunk that share the tiles they read. */
    private static final int ROWS_PER_UNIT = 32;

    /** Below so many units per thread, single rows are cut by tiles. */
    private static final int FEW_UNITS = 4;

    /**
     * What a thread does at once.
     *
     * @param row the first row
     * @param state where the unit's state starts among the partial ones, -1 if it is complete
     */
    private record Unit(int row, int rows, int kvHead, int firstTile, int tiles, int state) {}

    /** Partial states of one row and KV head, of neighbouring tiles, to be merged in order. */
    private record Merge(int row, int kvHead, int tiles, int state) {}

    private final Kernels kernels;
    private final ComputeThreads threads;
    private final ModelConfig config;
    private final int queriesPerKvHead;
    private final AttentionScratch[] scratch;
    private final List<Unit> units = new ArrayList<>();
    private final List<Merge> merges = new ArrayList<>();
    private final ComputeThreads.Work attendWork = this::attendUnits;
    private final ComputeThreads.Work mergeWork = this::mergeUnits;
    private float[] partialStates = new float[0];

    private @Nullable StepBatch batch;
    private @Nullable KvCacheShape shape;
    private MemorySegment cache = MemorySegment.NULL;
    private float[] queries = new float[0];
    private int queryStride;
    private float[] out = new float[0];

    PagedAttention(Kernels kernels, ComputeThreads threads, ModelConfig config) {
        this.kernels = kernels;
        this.threads = threads;
        this.config = config;
        queriesPerKvHead = config.heads() / config.kvHeads();
        scratch = new AttentionScratch[threads.count()];
        int rows = ROWS_PER_UNIT * queriesPerKvHead;
        for (int i = 0; i < scratch.length; i++) {
            scratch[i] = new AttentionScratch(rows, config.headDimension());
        }
    }

    /** Cuts a step's attention into units, the same for all layers. */
    void plan(StepBatch batch, KvCacheShape shape) {
        this.batch = batch;
        this.shape = shape;
        units.clear();
        merges.clear();
        int state = 0;
        boolean few = countUnits(batch) < FEW_UNITS * threads.count();
        for (int i = 0; i < batch.chunks().size(); i++) {
            int end = batch.firstRows()[i + 1];
            for (int row = batch.firstRows()[i]; row < end; row += ROWS_PER_UNIT) {
                int rows = Math.min(ROWS_PER_UNIT, end - row);
                int tiles = batch.position(row + rows - 1) / TILE + 1;
                for (int kvHead = 0; kvHead < config.kvHeads(); kvHead++) {
                    if (few && rows == 1 && tiles > 1) {
                        merges.add(new Merge(row, kvHead, tiles, state));
                        for (int tile = 0; tile < tiles; tile++) {
                            units.add(new Unit(row, 1, kvHead, tile, 1, state));
                            state += stateLength(queriesPerKvHead);
                        }
                    } else {
                        units.add(new Unit(row, rows, kvHead, 0, tiles, -1));
                    }
                }
            }
        }
        if (partialStates.length < state) {
            partialStates = new float[state];
        }
    }

    private int countUnits(StepBatch batch) {
        int count = 0;
        for (SequenceChunk chunk : batch.chunks()) {
            count += (chunk.tokens().length + ROWS_PER_UNIT - 1) / ROWS_PER_UNIT;
        }
        return count * config.kvHeads();
    }

    private int stateLength(int queries) {
        return AttentionScratch.stateLength(queries, config.headDimension());
    }

    /**
     * Attends one layer.
     *
     * @param cache the layer's region, with the K and V of the step's rows in it
     * @param queries the rotated queries of row {@code r} from {@code r * queryStride} on
     * @param out receives the heads' results, row by row without a gap
     */
    void run(MemorySegment cache, float[] queries, int queryStride, float[] out) {
        this.cache = cache;
        this.queries = queries;
        this.queryStride = queryStride;
        this.out = out;
        try {
            threads.run(units.size(), 1, attendWork);
            threads.run(merges.size(), 1, mergeWork);
        } finally {
            this.cache = MemorySegment.NULL;
        }
    }

    private void attendUnits(int from, int to, int thread) {
        for (int i = from; i < to; i++) {
            Unit unit = units.get(i);
            AttentionScratch s = scratch[thread];
            boolean complete = unit.state < 0;
            s.start(
                    unit.rows * queriesPerKvHead,
                    complete ? s.ownState : partialStates,
                    complete ? 0 : unit.state);
            attend(unit, s);
            if (complete) {
                finish(unit.row, unit.rows, unit.kvHead, s);
            }
        }
    }

    private void attend(Unit unit, AttentionScratch s) {
        StepBatch step = Objects.requireNonNull(batch);
        KvCacheShape kvShape = Objects.requireNonNull(shape);
        loadQueries(unit, s);
        int[] blocks = step.chunk(unit.row).blocks();
        int firstPosition = step.position(unit.row);
        int end = firstPosition + unit.rows;
        for (int tile = unit.firstTile; tile < unit.firstTile + unit.tiles; tile++) {
            int start = tile * TILE;
            int tokens = Math.min(TILE, end - start);
            for (int t = 0; t < tokens; t++) {
                s.offsets[t] = KvWriter.offset(kvShape, blocks, start + t, unit.kvHead);
            }
            boolean tiled = s.queries.rows() > Kernels.FEW_QUERIES;
            if (tiled) {
                kernels.readTokens(
                        cache,
                        kvShape.type(),
                        s.offsets,
                        tokens,
                        config.headDimension(),
                        s.words,
                        s.keys,
                        s.values);
            }
            for (int group = 0; group < s.queries.groups(); group++) {
                attendGroup(group, firstPosition - start, tiled, tokens, s);
            }
        }
    }

    private void loadQueries(Unit unit, AttentionScratch s) {
        int head = config.headDimension();
        float scale = (float) (1.0 / Math.sqrt(head));
        for (int q = 0; q < unit.rows * queriesPerKvHead; q++) {
            int row = unit.row + q / queriesPerKvHead;
            int number = unit.kvHead * queriesPerKvHead + q % queriesPerKvHead;
            int from = row * queryStride + number * head;
            for (int d = 0; d < head; d++) {
                s.queries.values()[s.queries.index(q, d / TILE) + d % TILE] =
                        queries[from + d] * scale;
            }
        }
    }

    /**
     * Attends up to six queries to the tokens of a tile. The method is too long to be inlined, like
     * the larger kernels and for the same reason: what it calls fills a compilation.
     *
     * @param distance the position of query 0 less the tile's first position
     * @param tiled whether the scratch has K and V of the tokens; else the cache is read
     */
    private void attendGroup(
            int group, int distance, boolean tiled, int tokens, AttentionScratch s) {
        int first = group * BlockedRows.GROUP;
        int rows = s.queries.rowsOf(group);
        if (distance + (first + rows - 1) / queriesPerKvHead < 0) {
            return;
        }
        int head = config.headDimension();
        KvType type = Objects.requireNonNull(shape).type();
        int start = s.queries.index(first, 0);
        int stride = s.queries.index(0, 1);
        float[] x = s.queries.values();
        if (tiled) {
            kernels.product(s.keys, 0, head / TILE, x, start, stride, rows, s.scores);
        } else {
            kernels.scoreTokens(
                    cache, type, s.offsets, tokens, head, s.words, x, start, stride, rows,
                    s.scores);
        }
        for (int r = 0; r < rows; r++) {
            int count = Math.min(TILE, distance + (first + r) / queriesPerKvHead + 1);
            if (count > 0) {
                float maximum = kernels.softmax(s.scores, r * TILE, count);
                s.weigh(first + r, r, maximum, Lanes.sum(s.scores, r * TILE));
            } else {
                Arrays.fill(s.scores, r * TILE, (r + 1) * TILE, 0.0f);
                s.keep(r);
            }
        }
        for (int b = 0; b < head / TILE; b++) {
            if (tiled) {
                kernels.product(s.values, b * TILE * TILE, 1, s.scores, 0, 0, rows, s.product);
            } else {
                kernels.sumTokens(
                        cache, type, s.offsets, tokens, head, b * TILE, s.scores, rows, s.product);
            }
            for (int r = 0; r < rows; r++) {
                int sum = s.sumIndex(first + r, b);
                kernels.merge(s.state, sum, s.product, r * TILE, s.oldWeights[r], s.newWeights[r]);
            }
        }
    }

    private void mergeUnits(int from, int to, int thread) {
        for (int i = from; i < to; i++) {
            Merge merge = merges.get(i);
            AttentionScratch s = scratch[thread];
            s.resume(queriesPerKvHead, partialStates, merge.state);
            for (int tile = 1; tile < merge.tiles; tile++) {
                mergeState(merge.state + tile * stateLength(queriesPerKvHead), s);
            }
            finish(merge.row, 1, merge.kvHead, s);
        }
    }

    private void mergeState(int other, AttentionScratch s) {
        for (int q = 0; q < queriesPerKvHead; q++) {
            int statistics = other + s.maximumIndex(q) - s.stateOffset;
            s.weigh(q, 0, partialStates[statistics], partialStates[statistics + 1]);
            for (int b = 0; b < config.headDimension() / TILE; b++) {
                int sum = s.sumIndex(q, b);
                kernels.merge(
                        s.state,
                        sum,
                        partialStates,
                        other + sum - s.stateOffset,
                        s.oldWeights[0],
                        s.newWeights[0]);
            }
        }
    }

    private void finish(int row, int rows, int kvHead, AttentionScratch s) {
        int head = config.headDimension();
        for (int q = 0; q < rows * queriesPerKvHead; q++) {
            int number = kvHead * queriesPerKvHead + q % queriesPerKvHead;
            int to = ((row + q / queriesPerKvHead) * config.heads() + number) * head;
            float factor = 1.0f / s.state[s.maximumIndex(q) + 1];
            for (int d = 0; d < head; d++) {
                out[to + d] = s.state[s.sumIndex(q, d / TILE) + d % TILE] * factor;
            }
        }
    }
}
