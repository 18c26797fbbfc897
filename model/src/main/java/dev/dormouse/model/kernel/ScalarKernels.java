package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;
import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import dev.dormouse.model.KvType;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The definition of every kernel, one number at a time. */
public final class ScalarKernels implements Kernels {
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public String name() {
        return "scalar";
    }

    @Override
    public void heads(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] heads) {
        for (int n = 0; n < PANEL; n++) {
            heads[n] = PackedElements.scale(matrix, weights, blockOffset, n);
            heads[PANEL + n] = PackedElements.minimum(matrix, weights, blockOffset, n);
        }
    }

    @Override
    public void expand(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] tile) {
        for (int k = 0; k < BLOCK; k++) {
            for (int n = 0; n < PANEL; n++) {
                tile[k * PANEL + n] = PackedElements.quant(matrix, weights, blockOffset, n, k);
            }
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
        for (int r = 0; r < rows; r++) {
            for (int n = 0; n < TILE; n++) {
                float sum = 0.0f;
                for (int k = 0; k < blocks * TILE; k++) {
                    float element = x[xOffset + k / TILE * xStride + r * TILE + k % TILE];
                    sum = Math.fma(element, tiles[tileOffset + k * TILE + n], sum);
                }
                out[r * TILE + n] = sum;
            }
        }
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
        for (int r = 0; r < rows; r++) {
            for (int n = 0; n < TILE; n++) {
                int i = accOffset + r * TILE + n;
                float scaled = Math.fma(heads[n], product[r * TILE + n], acc[i]);
                acc[i] = Math.fma(heads[TILE + n], sums[sumOffset + r], scaled);
            }
        }
    }

    @Override
    public void prepareRows(TensorType type, BlockedRows rows, int first, float[] prepared) {
        int width = rows.blocks() * BLOCK;
        for (int row = first; row < rows.rows(); row++) {
            for (int b = 0; b < rows.blocks(); b++) {
                int to = (row - first) * width + b * BLOCK;
                System.arraycopy(rows.values(), rows.index(row, b), prepared, to, BLOCK);
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
        for (int r = 0; r < rows; r++) {
            for (int n = 0; n < PANEL; n++) {
                float sum = 0.0f;
                for (int k = 0; k < BLOCK; k++) {
                    float quant = PackedElements.quant(matrix, weights, blockOffset, n, k);
                    sum = Math.fma(prepared[from + r * matrix.inputs() + k], quant, sum);
                }
                out[r * PANEL + n] = sum;
            }
        }
    }

    @Override
    public void merge(float[] y, int yOffset, float[] t, int tOffset, float a, float b) {
        for (int n = 0; n < TILE; n++) {
            y[yOffset + n] = Math.fma(y[yOffset + n], a, t[tOffset + n] * b);
        }
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
        float[] partial = new float[Lanes.COUNT];
        for (int i = 0; i < width; i++) {
            float element = x[xOffset + i];
            partial[i % Lanes.COUNT] = Math.fma(element, element, partial[i % Lanes.COUNT]);
        }
        float scale = normScale(Lanes.fold(partial, 0), width, epsilon);
        for (int i = 0; i < width; i++) {
            out.values()[out.index(row, i / BLOCK) + i % BLOCK] =
                    x[xOffset + i] * scale * weights.get(FLOAT, weightOffset + 4L * i);
        }
        for (int b = 0; b < width / BLOCK; b++) {
            out.sumBlock(row, b);
        }
    }

    /** The factor of root mean square normalisation. */
    static float normScale(float sumOfSquares, int width, float epsilon) {
        return (float) (1.0 / Math.sqrt((double) sumOfSquares / width + epsilon));
    }

    @Override
    public void gate(float[] gateUp, int offset, int width, BlockedRows out, int row) {
        for (int i = 0; i < width; i++) {
            float gate = gateUp[offset + i];
            float silu = gate / (1.0f + Exponential.exp(-gate));
            out.values()[out.index(row, i / BLOCK) + i % BLOCK] = silu * gateUp[offset + width + i];
        }
        for (int b = 0; b < width / BLOCK; b++) {
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
        Arrays.fill(keys, 0.0f);
        Arrays.fill(values, 0.0f);
        for (int t = 0; t < tokens; t++) {
            for (int d = 0; d < headDimension; d++) {
                long key = offsets[t] + (long) type.bytes() * d;
                long value = key + (long) type.bytes() * headDimension;
                keys[d * TILE + t] = widen(type, cache.get(HALF, key));
                values[d / TILE * TILE * TILE + t * TILE + d % TILE] =
                        widen(type, cache.get(HALF, value));
            }
        }
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
        for (int q = 0; q < queries; q++) {
            for (int t = 0; t < tokens; t++) {
                float sum = 0.0f;
                for (int d = 0; d < headDimension; d++) {
                    short key = cache.get(HALF, offsets[t] + (long) type.bytes() * d);
                    float element = x[xOffset + d / TILE * xStride + q * TILE + d % TILE];
                    sum = Math.fma(element, widen(type, key), sum);
                }
                scores[q * TILE + t] = sum;
            }
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
        for (int q = 0; q < queries; q++) {
            for (int n = 0; n < TILE; n++) {
                float sum = 0.0f;
                for (int t = 0; t < tokens; t++) {
                    long at = offsets[t] + (long) type.bytes() * (headDimension + dimension + n);
                    sum = Math.fma(weights[q * TILE + t], widen(type, cache.get(HALF, at)), sum);
                }
                out[q * TILE + n] = sum;
            }
        }
    }

    private static float widen(KvType type, short bits) {
        return switch (type) {
            case F16 -> Float.float16ToFloat(bits);
            case BF16 -> Float.intBitsToFloat(bits << 16);
        };
    }

    @Override
    public float softmax(float[] scores, int offset, int count) {
        float maximum = Lanes.maximum(scores, offset, count);
        for (int t = 0; t < TILE; t++) {
            scores[offset + t] = t < count ? Exponential.exp(scores[offset + t] - maximum) : 0.0f;
        }
        return maximum;
    }
}
