package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/**
 * Products of one row and packed quants, which never leave the registers.
 *
 * <p>The order of the multiply-adds is that of {@link VectorProduct}. Quants are masked out of
 * their words but not shifted down, so they are too large by a power of two; the row, prepared
 * once, is too small by the same. Both are exact, as long as no element of the row is below {@code
 * 2^-100}.
 */
final class VectorRowProduct {
    private static final IntVector TOP_BYTE = IntVector.broadcast(INTS, 0xFF000000);

    private VectorRowProduct() {}

    /** What the element {@code k} of a block has to be multiplied by for {@link #nibbles}. */
    static float nibbleFactor(int k) {
        return (k % 2 == 0 ? 1.0f : 0x1p-8f) * (k < 16 ? 1.0f : 0x1p-4f);
    }

    /** What every element has to be multiplied by for {@link #bytes}. */
    static float byteFactor() {
        return 0x1p-24f;
    }

    static void nibbles(
            MemorySegment weights,
            long words,
            float[] x,
            int xOffset,
            float sum,
            float[] heads,
            float[] acc) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            // Inputs 0 to 15 are the low nibbles of words 0 to 3, inputs 16 to 31 the high ones.
            for (int shift = 0; shift < 8; shift += 4) {
                IntVector even = IntVector.broadcast(INTS, 0xF << shift);
                IntVector odd = IntVector.broadcast(INTS, 0xF00 << shift);
                for (int j = 0; j < 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    int k = xOffset + 4 * shift + 4 * j;
                    for (int i = 0; i < 4; i += 2) {
                        FloatVector x0 = all(x[k + i]);
                        a = toFloats(v.and(even)).fma(x0, a);
                        b = toFloats(w.and(even)).fma(x0, b);
                        FloatVector x1 = all(x[k + i + 1]);
                        a = toFloats(v.and(odd)).fma(x1, a);
                        b = toFloats(w.and(odd)).fma(x1, b);
                        v = v.lanewise(LSHR, 16);
                        w = w.lanewise(LSHR, 16);
                    }
                }
            }
            FloatVector s = all(sum);
            a = floats(heads, n).fma(a, floats(acc, n));
            floats(heads, PANEL + n).fma(s, a).intoArray(acc, n);
            b = floats(heads, n + LENGTH).fma(b, floats(acc, n + LENGTH));
            floats(heads, PANEL + n + LENGTH).fma(s, b).intoArray(acc, n + LENGTH);
        }
    }

    static void bytes(
            MemorySegment weights,
            long words,
            float[] x,
            int xOffset,
            float sum,
            float[] heads,
            float[] acc) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            for (int j = 0; j < 8; j++) {
                IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                int k = xOffset + 4 * j;
                for (int i = 0; i < 4; i += 2) {
                    FloatVector x0 = all(x[k + i]);
                    a = toFloats(v.and(TOP_BYTE)).fma(x0, a);
                    b = toFloats(w.and(TOP_BYTE)).fma(x0, b);
                    FloatVector x1 = all(x[k + i + 1]);
                    a = toFloats(v.lanewise(LSHL, 8).and(TOP_BYTE)).fma(x1, a);
                    b = toFloats(w.lanewise(LSHL, 8).and(TOP_BYTE)).fma(x1, b);
                    v = v.lanewise(LSHL, 16);
                    w = w.lanewise(LSHL, 16);
                }
            }
            FloatVector s = all(sum);
            a = floats(heads, n).fma(a, floats(acc, n));
            floats(heads, PANEL + n).fma(s, a).intoArray(acc, n);
            b = floats(heads, n + LENGTH).fma(b, floats(acc, n + LENGTH));
            floats(heads, PANEL + n + LENGTH).fma(s, b).intoArray(acc, n + LENGTH);
        }
    }

    /** For quants that are the weights; {@code tile} is expanded. */
    static void tile(float[] tile, float[] x, int xOffset, float[] acc) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            for (int k = 0; k < PANEL; k++) {
                FloatVector xk = all(x[xOffset + k]);
                a = xk.fma(floats(tile, k * PANEL + n), a);
                b = xk.fma(floats(tile, k * PANEL + n + LENGTH), b);
            }
            floats(acc, n).add(a).intoArray(acc, n);
            floats(acc, n + LENGTH).add(b).intoArray(acc, n + LENGTH);
        }
    }
}
