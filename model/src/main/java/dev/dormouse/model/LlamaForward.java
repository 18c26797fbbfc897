package dev.dormouse.model;

import dev.dormouse.model.kernel.BlockedRows;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.MatrixMultiply;
import dev.dormouse.model.kernel.PackedElements;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The transformer, layer by layer, for all rows of a step at once.
 *
 * <p>Buffers grow with the rows of a step and are reused. Between two multiplications every row
 * goes its own way, so threads share the rows.
 */
final class LlamaForward {
    /** Rows handed to a thread at once; fewer are not worth waking one. */
    private static final int ROWS = 4;

    private final ModelConfig config;
    private final LlamaLayout layout;
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

    // The step and the layer that the row work is about.
    private @Nullable StepBatch batch;
    private @Nullable PagedKv kv;
    private MemorySegment weights = MemorySegment.NULL;
    private int layer;
    private long norm;

    private final ComputeThreads.Work embedWork = this::embedRows;
    private final ComputeThreads.Work normaliseWork = this::normaliseRows;
    private final ComputeThreads.Work cacheWork = this::cacheRows;
    private final ComputeThreads.Work blockWork = this::blockRows;
    private final ComputeThreads.Work gateWork = this::gateRows;

    LlamaForward(ModelConfig config, LlamaLayout layout, Kernels kernels, ComputeThreads threads) {
        this.config = config;
        this.layout = layout;
        this.kernels = kernels;
        this.threads = threads;
        multiply = new MatrixMultiply(kernels, threads);
        attention = new PagedAttention(kernels, threads, config);
        rotary =
                new RotaryEmbedding(
                        config.headDimension(),
                        config.ropeDimensions(),
                        config.ropeBase(),
                        config.ropeDivisors());
        adjustment = new HeadAdjustment(config);
        queryWidth = config.heads() * config.headDimension();
        keyWidth = config.kvHeads() * config.headDimension();
        projectedWidth = queryWidth + 2 * keyWidth;
    }

    Logits run(StepBatch step, MemorySegment weightRegion, PagedKv cache) {
        batch = step;
        kv = cache;
        weights = weightRegion;
        try {
            reshape(step);
            attention.plan(step, cache.shape());
            int rows = layers(step, cache);
            return new Logits(logits, rows, config.vocabularySize());
        } finally {
            batch = null;
            kv = null;
            weights = MemorySegment.NULL;
        }
    }

    private int layers(StepBatch step, PagedKv cache) {
        int rows = step.rows();
        rowWork(rows, embedWork);
        for (layer = 0; layer < config.layers(); layer++) {
            LlamaLayout.Layer w = layout.layers().get(layer);
            normalise(rows, w.attentionNorm());
            multiply.run(w.queryKeyValue(), weights, input, projected, projectedWidth);
            rowWork(rows, cacheWork);
            attention.run(cache.layers().get(layer), projected, projectedWidth, attended);
            if (layer == config.layers() - 1) {
                rows = keepLogitRows(step);
            }
            if (rows > 0) {
                feedForward(rows, w);
            }
        }
        if (rows > 0) {
            normalise(rows, layout.outputNorm());
            multiply.run(layout.head(), weights, input, logits, config.vocabularySize());
        }
        return rows;
    }

    private void feedForward(int rows, LlamaLayout.Layer w) {
        input.reshape(rows, queryWidth);
        rowWork(rows, blockWork);
        multiply.run(w.output(), weights, input, addend, config.embeddingLength());
        normalise(rows, w.feedForwardNorm());
        multiply.run(w.gateUp(), weights, input, gateUp, 2 * config.feedForwardLength());
        inner.reshape(rows, config.feedForwardLength());
        rowWork(rows, gateWork);
        multiply.run(w.down(), weights, inner, addend, config.embeddingLength());
    }

    private void reshape(StepBatch step) {
        int rows = step.rows();
        int width = config.embeddingLength();
        residual = grown(residual, rows, width);
        addend = grown(addend, rows, width);
        projected = grown(projected, rows, projectedWidth);
        attended = grown(attended, rows, queryWidth);
        gateUp = grown(gateUp, rows, 2 * config.feedForwardLength());
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
            PackedElements.readRow(
                    layout.embedding(), weights, step.token(row), residual, row * width);
            Arrays.fill(addend, row * width, (row + 1) * width, 0.0f);
            rotary.prepare(row, step.position(row));
        }
    }

    /** Adds what the last block computed to the residual, and normalises it as the next input. */
    private void normalise(int rows, long normOffset) {
        norm = normOffset;
        input.reshape(rows, config.embeddingLength());
        rowWork(rows, normaliseWork);
    }

    private void normaliseRows(int from, int to, int thread) {
        int width = config.embeddingLength();
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
        PagedKv cache = Objects.requireNonNull(kv);
        KvCacheShape shape = cache.shape();
        MemorySegment region = cache.layers().get(layer);
        int head = config.headDimension();
        for (int row = from; row < to; row++) {
            int start = row * projectedWidth;
            adjustment.apply(layout.layers().get(layer), weights, projected, start);
            for (int h = 0; h < config.heads() + config.kvHeads(); h++) {
                rotary.rotate(projected, start + h * head, row);
            }
            int[] blocks = step.chunk(row).blocks();
            for (int h = 0; h < config.kvHeads(); h++) {
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
            kernels.copyRow(attended, row * queryWidth, queryWidth, input, row);
        }
    }

    private void gateRows(int from, int to, int thread) {
        int width = config.feedForwardLength();
        for (int row = from; row < to; row++) {
            kernels.gate(gateUp, row * 2 * width, width, inner, row);
        }
    }

    /** After the last attention only rows whose logits were asked for matter; moves them up. */
    private int keepLogitRows(StepBatch step) {
        int width = config.embeddingLength();
        for (int i = 0; i < step.logitRows().length; i++) {
            int row = step.logitRows()[i];
            System.arraycopy(residual, row * width, residual, i * width, width);
            System.arraycopy(attended, row * queryWidth, attended, i * queryWidth, queryWidth);
        }
        return step.logitRows().length;
    }
}
