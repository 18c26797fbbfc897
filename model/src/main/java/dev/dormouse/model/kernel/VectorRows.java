package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.FLOATS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.floats;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShuffle;

/** Everything that goes along rows: normalisation, gate, softmax, and sums in {@link Lanes} order. */
final class VectorRows {
    private static final VectorShuffle<Float> ROTATE_8 = rotate(8);
    private static final VectorShuffle<Float> ROTATE_4 = rotate(4);
    private static final VectorShuffle<Float> ROTATE_2 = rotate(2);
    private static final VectorShuffle<Float> ROTATE_1 = rotate(1);

    private VectorRows() {}

    private static VectorShuffle<Float> rotate(int lanes) {
        return VectorShuffle.iota(FLOATS, lanes, 1, true);
    }

    static void accumulate(
            float[] product,
            float[] heads,
            float[] sums,
            int sumOffset,
            int rows,
            float[] acc,
            int accOffset) {
        for (int r = 0; r < rows; r++) {
            FloatVector sum = FloatVector.broadcast(FLOATS, sums[sumOffset + r]);
            for (int n = 0; n < TILE; n += LENGTH) {
                int i = r * TILE + n;
                FloatVector scaled =
                        floats(heads, n).fma(floats(product, i), floats(acc, accOffset + i));
                floats(heads, TILE + n).fma(sum, scaled).intoArray(acc, accOffset + i);
            }
        }
    }

    static void merge(float[] y, int yOffset, float[] t, int tOffset, float a, float b) {
        FloatVector factor = FloatVector.broadcast(FLOATS, a);
        for (int n = 0; n < TILE; n += LENGTH) {
            floats(y, yOffset + n)
                    .fma(factor, floats(t, tOffset + n).mul(b))
                    .intoArray(y, yOffset + n);
        }
    }

    /** The sum of 32 elements. */
    static float sum(float[] values, int offset) {
        return switch (LENGTH) {
            case 4 ->
                    fold(
                            pair(values, offset)
                                    .add(pair(values, offset + 8))
                                    .add(pair(values, offset + 4).add(pair(values, offset + 12))));
            case 8 -> fold(pair(values, offset).add(pair(values, offset + 8)));
            default -> fold(pair(values, offset));
        };
    }

    private static FloatVector pair(float[] values, int offset) {
        return floats(values, offset).add(floats(values, offset + Lanes.COUNT));
    }

    static float sumOfSquares(float[] values, int offset, int width) {
        int end = offset + width;
        return switch (LENGTH) {
            case 4 ->
                    fold(
                            squares(values, offset, end)
                                    .add(squares(values, offset + 8, end))
                                    .add(
                                            squares(values, offset + 4, end)
                                                    .add(squares(values, offset + 12, end))));
            case 8 -> fold(squares(values, offset, end).add(squares(values, offset + 8, end)));
            default -> fold(squares(values, offset, end));
        };
    }

    private static FloatVector squares(float[] values, int from, int end) {
        FloatVector sum = FloatVector.zero(FLOATS);
        for (int i = from; i < end; i += Lanes.COUNT) {
            FloatVector x = floats(values, i);
            sum = x.fma(x, sum);
        }
        return sum;
    }

    /** Adds the upper half of the lanes to the lower half, until one is left. */
    private static float fold(FloatVector sums) {
        FloatVector v = sums;
        if (LENGTH > 8) {
            v = v.add(v.rearrange(ROTATE_8));
        }
        if (LENGTH > 4) {
            v = v.add(v.rearrange(ROTATE_4));
        }
        v = v.add(v.rearrange(ROTATE_2));
        return v.add(v.rearrange(ROTATE_1)).lane(0);
    }

    /** {@code y = x * scale * weight} over 32 elements. */
    static void scale(
            float[] x, int xOffset, float scale, MemorySegment weights, long weight, float[] y, int to) {
        for (int i = 0; i < TILE; i += LENGTH) {
            FloatVector w =
                    FloatVector.fromMemorySegment(
                            FLOATS, weights, weight + 4L * i, ByteOrder.LITTLE_ENDIAN);
            floats(x, xOffset + i).mul(scale).mul(w).intoArray(y, to + i);
        }
    }

    /** {@code silu(gate) * up} over 32 elements. */
    static void gate(float[] gateUp, int gate, int up, float[] y, int to) {
        for (int i = 0; i < TILE; i += LENGTH) {
            FloatVector g = floats(gateUp, gate + i);
            FloatVector silu = g.div(exp(g.neg()).add(1.0f));
            silu.mul(floats(gateUp, up + i)).intoArray(y, to + i);
        }
    }

    static void softmax(
            float[] scores, int offset, int count, float[] statistics, int index) {
        Arrays.fill(scores, offset + count, offset + TILE, Float.NEGATIVE_INFINITY);
        FloatVector highest = floats(scores, offset);
        for (int t = LENGTH; t < TILE; t += LENGTH) {
            highest = highest.max(floats(scores, offset + t));
        }
        float maximum = highest.reduceLanes(VectorOperators.MAX);
        for (int t = 0; t < TILE; t += LENGTH) {
            exp(floats(scores, offset + t).sub(maximum)).intoArray(scores, offset + t);
        }
        Arrays.fill(scores, offset + count, offset + TILE, 0.0f);
        statistics[index] = maximum;
        statistics[index + 1] = sum(scores, offset);
    }

    /** {@link Exponential#exp} of every lane. */
    private static FloatVector exp(FloatVector value) {
        FloatVector x = value.max(Exponential.LOWEST).min(Exponential.HIGHEST);
        FloatVector shifted = x.fma(all(Exponential.LOG2_E), all(Exponential.ROUND));
        FloatVector n = shifted.sub(Exponential.ROUND);
        FloatVector r = n.fma(all(-Exponential.LN2_HIGH), x);
        r = n.fma(all(-Exponential.LN2_LOW), r);
        FloatVector p = all(Exponential.P0).fma(r, all(Exponential.P1));
        p = p.fma(r, all(Exponential.P2));
        p = p.fma(r, all(Exponential.P3));
        p = p.fma(r, all(Exponential.P4));
        p = p.fma(r, all(Exponential.P5));
        p = p.fma(r.mul(r), r).add(1.0f);
        IntVector scale =
                shifted.reinterpretAsInts()
                        .add(Exponential.EXPONENT_BIAS)
                        .lanewise(VectorOperators.LSHL, Exponential.MANTISSA_BITS);
        return p.mul(scale.reinterpretAsFloats());
    }

    private static FloatVector all(float value) {
        return FloatVector.broadcast(FLOATS, value);
    }
}
