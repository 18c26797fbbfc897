package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.FLOATS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/** What goes along rows: normalisation, gate, softmax, merges. */
final class VectorRows {
    private VectorRows() {}

    static void merge(float[] y, int yOffset, float[] t, int tOffset, float a, float b) {
        FloatVector factor = all(a);
        for (int n = 0; n < TILE; n += LENGTH) {
            floats(y, yOffset + n)
                    .fma(factor, floats(t, tOffset + n).mul(b))
                    .intoArray(y, yOffset + n);
        }
    }

    /**
     * Adds up squares.
     *
     * @param partial room for the partial sums, from {@code at} on: an array of their own for each
     *     row would be garbage
     */
    static float sumOfSquares(float[] values, int offset, int width, float[] partial, int at) {
        for (int lane = 0; lane < Lanes.COUNT; lane += LENGTH) {
            FloatVector sum = all(0.0f);
            for (int i = offset + lane; i < offset + width; i += Lanes.COUNT) {
                FloatVector x = floats(values, i);
                sum = x.fma(x, sum);
            }
            // Not returned from a method of its own, which would have made objects of the vectors.
            sum.intoArray(partial, at + lane);
        }
        return Lanes.fold(partial, at);
    }

    /** {@code y = x * scale * weight} over 32 elements. */
    static void scale(
            float[] x,
            int xOffset,
            float scale,
            MemorySegment weights,
            long weight,
            float[] y,
            int to) {
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
            FloatVector silu = g.div(VectorExponential.exp(g.neg()).add(1.0f));
            silu.mul(floats(gateUp, up + i)).intoArray(y, to + i);
        }
    }

    static float softmax(float[] scores, int offset, int count) {
        float maximum =
                count == TILE ? maximum(scores, offset) : Lanes.maximum(scores, offset, count);
        FloatVector subtrahend = all(maximum);
        for (int t = 0; t < count; t += LENGTH) {
            FloatVector x = floats(scores, offset + t).sub(subtrahend);
            VectorExponential.exp(x).intoArray(scores, offset + t);
        }
        Arrays.fill(scores, offset + count, offset + TILE, 0.0f);
        return maximum;
    }

    private static float maximum(float[] scores, int offset) {
        FloatVector maximum = floats(scores, offset);
        for (int t = LENGTH; t < TILE; t += LENGTH) {
            maximum = maximum.max(floats(scores, offset + t));
        }
        return maximum.reduceLanes(VectorOperators.MAX);
    }
}
