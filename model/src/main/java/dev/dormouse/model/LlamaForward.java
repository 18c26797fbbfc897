package dev.dormouse.model;

import dev.dormouse.model.kernel.BlockedRows;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.MatrixMultiply;
import dev.dormouse.model.kernel.PackedElements;
import dev.dormouse.model.kernel.PackedMatrix;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The transformer, layer by layer, for all rows of a step at once.
 *
 * <p>Buffers grow with the rows of a step and are reused. Between two multiplications every row
 * goes its own way, so threads share the rows.
 *
 * <p>Ranks come one after the other, each with all threads. Where Megatron-LM sums over the ranks,
 * after the attention and after the feed-forward network, each rank goes on with the sums of the
 * one before: so the outcome is, bit for bit, that of one rank which has everything.
 */
final class LlamaForward {
    /** Rows handed to a thread at once; fewer are not worth waking one. */
    private static final int ROWS = 4;

    private final ModelConfig config;
    private final ModelConfig own;
    private final List<LlamaLayout> layouts;
    private final Kernels kernels;
    private final ComputeThreads threads;
    private final MatrixMultiply multiply;
    private final PagedAttention attention;
    private final HeadAdjustment adjustment;
    private final RotaryEmbedding rotary;
    private final int queryWidth;
    private final int keyWidth;
    private final int projectedWidth;

    private final BlockedRows input = new BlockedRows();
    private final BlockedRows inner = new BlockedRows();
    private float[] residual = new float[0];
    private float[] projected = new float[0];
    private float[] attended = new float[0];
    private float[] gateUp = new float[0];
    private float[] addend = new float[0];
    private float[] logits = new float[0];

    // The step, the rank and the layer that the row work is about.
    private @Nullable StepBatch batch;
    private List<RankView> ranks = List.of();
    private int rank;
    private int layer;
    private long norm;

    private final ComputeThreads.Work embedWork = this::embedRows;
    private final ComputeThreads.Work normaliseWork = this::normaliseRows;
    private final ComputeThreads.Work cacheWork = this::cacheRows;
    private final ComputeThreads.Work blockWork = this::blockRows;
    private final ComputeThreads.Work gateWork = this::gateRows;

    /**
     * The pass over a model.
     *
     * @param own the extents of each rank
     * @param layouts of the ranks' weights
     */
    LlamaForward(
            ModelConfig config,
            ModelConfig own,
            List<LlamaLayout> layouts,
            Kernels kernels,
            ComputeThreads threads) {
        this.config = config;
        this.own = own;
        this.layouts = List.copyOf(layouts);
        this.kernels = kernels;
        this.threads = threads;
        multiply = new MatrixMultiply(kernels, threads);
        attention = new PagedAttention(kernels, threads, own);
        rotary =
                new RotaryEmbedding(
                        config.headDimension(),
                        config.ropeDimensions(),
                        config.ropeBase(),
                        config.ropeDivisors());
        adjustment = new HeadAdjustment(own);
        queryWidth = own.heads() * own.headDimension();
        keyWidth = own.kvHeads() * own.headDimension();
        projectedWidth = queryWidth + 2 * keyWidth;
    }

    Logits run(StepBatch step, List<RankView> memory) {
        batch = step;
        ranks = memory;
        try {
            reshape(step);
            attention.plan(step, memory.getFirst().kv().shape());
            int rows = layers(step);
            return new Logits(logits, rows, config.vocabularySize());
        } finally {
            batch = null;
            ranks = List.of();
        }
    }

    private int layers(StepBatch step) {
        int rows = step.rows();
        rowWork(rows, embedWork);
        for (layer = 0; layer < config.layers(); layer++) {
            normalise(rows, layouts.getFirst().layers().get(layer).attentionNorm());
            // After the last attention only rows whose logits were asked for matter.
            boolean last = layer == config.layers() - 1;
            int left = last ? step.logitRows().length : rows;
            for (rank = 0; rank < layouts.size(); rank++) {
                attend(rows, left);
            }
            if (last) {
                keepLogitRows(residual, config.embeddingLength());
            }
            rows = left;
            if (rows > 0) {
                normalise(rows, layouts.getFirst().layers().get(layer).feedForwardNorm());
                for (rank = 0; rank < layouts.size(); rank++) {
                    feedForward(rows);
                }
            }
        }
        if (rows > 0) {
            normalise(rows, layouts.getFirst().outputNorm());
            for (rank = 0; rank < layouts.size(); rank++) {
                head();
            }
        }
        return rows;
    }

    private void attend(int rows, int left) {
        LlamaLayout.Layer w = layouts.get(rank).layers().get(layer);
        multiply.run(w.queryKeyValue(), weights(), input, projected, 0, projectedWidth);
        rowWork(rows, cacheWork);
        attention.run(kv().layers().get(layer), projected, projectedWidth, attended);
        if (left < rows) {
            keepLogitRows(attended, queryWidth);
        }
        if (left > 0) {
            inner.reshape(left, queryWidth);
            rowWork(left, blockWork);
            sum(w.output());
        }
    }

    private void feedForward(int rows) {
        LlamaLayout.Layer w = layouts.get(rank).layers().get(layer);
        int width = own.feedForwardLength();
        multiply.run(w.gateUp(), weights(), input, gateUp, 0, 2 * width);
        inner.reshape(rows, width);
        rowWork(rows, gateWork);
        sum(w.down());
    }

    /** Multiplies what a rank has of the inputs, and adds that to what the earlier ranks have. */
    private void sum(List<PackedMatrix> matrix) {
        if (rank == 0) {
            multiply.run(matrix, weights(), inner, addend, 0, config.embeddingLength());
        } else {
            multiply.add(matrix, weights(), inner, addend, config.embeddingLength());
        }
    }

    private void head() {
        LlamaLayout layout = layouts.get(rank);
        multiply.run(
                layout.head(),
                weights(),
                input,
                logits,
                layout.firstToken(),
                config.vocabularySize());
    }

    private MemorySegment weights() {
        return ranks.get(rank).weights();
    }

    private PagedKv kv() {
        return ranks.get(rank).kv();
    }

    private void reshape(StepBatch step) {
        int rows = step.rows();
        int width = config.embeddingLength();
        residual = grown(residual, rows, width);
        addend = grown(addend, rows, width);
        projected = grown(projected, rows, projectedWidth);
        attended = grown(attended, rows, queryWidth);
        gateUp = grown(gateUp, rows, 2 * own.feedForwardLength());
        logits = grown(logits, step.logitRows().length, config.vocabularySize());
        rotary.reshape(rows);
    }

    private static float[] grown(float[] array, int rows, int width) {
        int length = Math.multiplyExact(rows, width);
        return array.length < length ? new float[length] : array;
    }

    private void rowWork(int rows, ComputeThreads.Work work) {
        threads.run(rows, ROWS, work);
    }

    private void embedRows(int from, int to, int thread) {
        StepBatch step = Objects.requireNonNull(batch);
        int width = config.embeddingLength();
        for (int row = from; row < to; row++) {
            embed(step.token(row), row * width);
            Arrays.fill(addend, row * width, (row + 1) * width, 0.0f);
            rotary.prepare(row, step.position(row));
        }
    }

    /** Reads a token's embedding from the rank that has it. */
    private void embed(int token, int to) {
        int owner = layouts.size() - 1;
        while (layouts.get(owner).firstToken() > token) {
            owner--;
        }
        LlamaLayout layout = layouts.get(owner);
        PackedElements.readRow(
                layout.embedding(),
                ranks.get(owner).weights(),
                token - layout.firstToken(),
                residual,
                to);
    }

    /** Adds what the last block computed to the residual, and normalises it as the next input. */
    private void normalise(int rows, long normOffset) {
        norm = normOffset;
        input.reshape(rows, config.embeddingLength());
        rowWork(rows, normaliseWork);
    }

    private void normaliseRows(int from, int to, int thread) {
        int width = config.embeddingLength();
        MemorySegment weights = ranks.getFirst().weights();
        for (int row = from; row < to; row++) {
            int start = row * width;
            for (int i = start; i < start + width; i++) {
                residual[i] += addend[i];
            }
            kernels.normalise(
                    residual, start, width, weights, norm, config.rmsEpsilon(), input, row);
        }
    }

    /** Adjusts and rotates queries and keys, and writes keys and values into the cache. */
    private void cacheRows(int from, int to, int thread) {
        StepBatch step = Objects.requireNonNull(batch);
        PagedKv cache = kv();
        KvCacheShape shape = cache.shape();
        MemorySegment region = cache.layers().get(layer);
        int head = config.headDimension();
        for (int row = from; row < to; row++) {
            int start = row * projectedWidth;
            adjustment.apply(layouts.get(rank).layers().get(layer), weights(), projected, start);
            for (int h = 0; h < own.heads() + own.kvHeads(); h++) {
                rotary.rotate(projected, start + h * head, row);
            }
            int[] blocks = step.chunk(row).blocks();
            for (int h = 0; h < own.kvHeads(); h++) {
                long key = KvWriter.offset(shape, blocks, step.position(row), h);
                long value = key + (long) head * shape.type().bytes();
                int keyFrom = start + queryWidth + h * head;
                KvWriter.write(region, key, shape.type(), projected, keyFrom, head);
                KvWriter.write(region, value, shape.type(), projected, keyFrom + keyWidth, head);
            }
        }
    }

    private void blockRows(int from, int to, int thread) {
        for (int row = from; row < to; row++) {
            kernels.copyRow(attended, row * queryWidth, queryWidth, inner, row);
        }
    }

    private void gateRows(int from, int to, int thread) {
        int width = own.feedForwardLength();
        for (int row = from; row < to; row++) {
            kernels.gate(gateUp, row * 2 * width, width, inner, row);
        }
    }

    /** Moves the rows whose logits were asked for up. */
    private void keepLogitRows(float[] values, int width) {
        int[] kept = Objects.requireNonNull(batch).logitRows();
        for (int i = 0; i < kept.length; i++) {
            System.arraycopy(values, kept[i] * width, values, i * width, width);
        }
    }
}
