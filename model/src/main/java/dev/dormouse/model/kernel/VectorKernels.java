package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

import dev.dormouse.model.KvType;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;

/** The kernels on {@code jdk.incubator.vector}, in the width of {@link VectorShapes}. */
public final class VectorKernels implements Kernels {
    @Override
    public String name() {
        return "vector-" + VectorShapes.FLOATS.vectorBitSize();
    }

    @Override
    public void heads(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] heads) {
        VectorTiles.heads(matrix, weights, blockOffset, heads);
    }

    @Override
    public void expand(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] tile) {
        if (matrix.type() == TensorType.Q6_K) {
            VectorTiles.expandScaled(weights, blockOffset, tile);
        } else {
            VectorTiles.expand(matrix, weights, matrix.wordOffset(blockOffset), tile);
        }
    }

    @Override
    public void product(
            float[] tiles,
            int tileOffset,
            int blocks,
            float[] x,
            int xOffset,
            int xStride,
            int rows,
            float[] out) {
        VectorProduct.product(tiles, tileOffset, blocks, x, xOffset, xStride, rows, out);
    }

    @Override
    public void accumulate(
            float[] product,
            float[] heads,
            float[] sums,
            int sumOffset,
            int rows,
            float[] acc,
            int accOffset) {
        if (rows == BlockedRows.GROUP) {
            VectorSums.sixRows(product, heads, sums, sumOffset, acc, accOffset);
        } else {
            VectorSums.rows(product, heads, sums, sumOffset, rows, acc, accOffset);
        }
    }

    @Override
    public void prepareRows(TensorType type, BlockedRows rows, int first, float[] prepared) {
        int width = rows.blocks() * BLOCK;
        for (int row = first; row < rows.rows(); row++) {
            for (int i = 0; i < width; i++) {
                prepared[(row - first) * width + i] =
                        rows.values()[rows.index(row, i / BLOCK) + i % BLOCK]
                                * VectorPackedProduct.factor(type, i % BLOCK);
            }
        }
    }

    @Override
    public void packedProduct(
            PackedMatrix matrix,
            MemorySegment weights,
            long blockOffset,
            float[] prepared,
            int from,
            int rows,
            float[] out) {
        long words = matrix.wordOffset(blockOffset);
        int second = from + matrix.inputs();
        switch (matrix.type()) {
            case Q4_0, Q4_1, Q4_K -> {
                if (rows == 1) {
                    VectorPackedProduct.nibbles(weights, words, prepared, from, out);
                } else {
                    VectorPackedProduct.nibbles(weights, words, prepared, from, second, out);
                }
            }
            case Q8_0, Q5_0, Q5_1, Q5_K -> {
                if (rows == 1) {
                    VectorPackedProduct.bytes(weights, words, prepared, from, out);
                } else {
                    VectorPackedProduct.bytes(weights, words, prepared, from, second, out);
                }
            }
            case Q6_K -> {
                if (rows == 1) {
                    VectorScaledProduct.bytes(weights, blockOffset, prepared, from, out);
                } else {
                    VectorScaledProduct.bytes(weights, blockOffset, prepared, from, second, out);
                }
            }
            case F32, F16, BF16 ->
                    throw new IllegalArgumentException("packed product: not quantised: " + matrix);
        }
    }

    @Override
    public void merge(float[] y, int yOffset, float[] t, int tOffset, float a, float b) {
        VectorRows.merge(y, yOffset, t, tOffset, a, b);
    }

    @Override
    public void copyRow(float[] x, int xOffset, int width, BlockedRows out, int row) {
        for (int b = 0; b < width / BLOCK; b++) {
            System.arraycopy(x, xOffset + b * BLOCK, out.values(), out.index(row, b), BLOCK);
            out.sumBlock(row, b);
        }
    }

    @Override
    public void normalise(
            float[] x,
            int xOffset,
            int width,
            MemorySegment weights,
            long weightOffset,
            float epsilon,
            BlockedRows out,
            int row) {
        // The partial sums lie where the row's first elements will.
        float sumOfSquares =
                VectorRows.sumOfSquares(x, xOffset, width, out.values(), out.index(row, 0));
        float scale = ScalarKernels.normScale(sumOfSquares, width, epsilon);
        for (int b = 0; b < width / BLOCK; b++) {
            int i = b * BLOCK;
            VectorRows.scale(
                    x,
                    xOffset + i,
                    scale,
                    weights,
                    weightOffset + 4L * i,
                    out.values(),
                    out.index(row, b));
            out.sumBlock(row, b);
        }
    }

    @Override
    public void gate(float[] gateUp, int offset, int width, BlockedRows out, int row) {
        for (int b = 0; b < width / BLOCK; b++) {
            int gate = offset + b * BLOCK;
            VectorRows.gate(gateUp, gate, gate + width, out.values(), out.index(row, b));
            out.sumBlock(row, b);
        }
    }

    @Override
    public void readTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int[] words,
            float[] keys,
            float[] values) {
        VectorTokens.readKeys(cache, type, offsets, tokens, headDimension, words, keys);
        VectorTokens.readValues(cache, type, offsets, tokens, headDimension, values);
    }

    @Override
    public void scoreTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int[] words,
            float[] x,
            int xOffset,
            int xStride,
            int queries,
            float[] scores) {
        VectorTokens.transposeKeys(cache, offsets, tokens, headDimension / 2, words);
        int blocks = headDimension / TILE;
        for (int t = 0; t < tokens; t += VectorShapes.LENGTH) {
            VectorFewQueries.scores(words, type, blocks, x, xOffset, xStride, scores, t);
        }
    }

    @Override
    public void sumTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int dimension,
            float[] weights,
            int queries,
            float[] out) {
        long from = (long) type.bytes() * (headDimension + dimension);
        for (int n = 0; n < TILE; n += 2 * VectorShapes.LENGTH) {
            long at = from + (long) type.bytes() * n;
            VectorFewQueries.sums(cache, type, offsets, tokens, at, weights, out, n);
        }
    }

    @Override
    public float softmax(float[] scores, int offset, int count) {
        return VectorRows.softmax(scores, offset, count);
    }
}
