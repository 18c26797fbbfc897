package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorShapes.FLOATS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Products of one row and packed quants, which never leave the registers.
 *
 * <p>The order of the multiply-adds is that of {@link VectorProduct}. Methods are kept small: the
 * compiler stops inlining vector operations in a method at about fifty of them.
 */
final class VectorRowProduct {
    private VectorRowProduct() {}

    static void nibbles(MemorySegment weights, long words, float[] x, int xOffset, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = FloatVector.zero(FLOATS);
            FloatVector b = FloatVector.zero(FLOATS);
            // Inputs 0 to 15 are the low nibbles of words 0 to 3, inputs 16 to 31 the high ones.
            for (int q = 0; q < 8; q++) {
                long word = words + 4L * (PANEL * (q & 3) + n);
                int k = xOffset + 4 * q;
                FloatVector x0 = FloatVector.broadcast(FLOATS, x[k]);
                FloatVector x1 = FloatVector.broadcast(FLOATS, x[k + 1]);
                FloatVector x2 = FloatVector.broadcast(FLOATS, x[k + 2]);
                FloatVector x3 = FloatVector.broadcast(FLOATS, x[k + 3]);
                IntVector v = ints(weights, word).lanewise(VectorOperators.LSHR, q & 4);
                IntVector w =
                        ints(weights, word + 4L * LENGTH).lanewise(VectorOperators.LSHR, q & 4);
                a = fourNibbles(v, x0, x1, x2, x3, a);
                b = fourNibbles(w, x0, x1, x2, x3, b);
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
        }
    }

    private static FloatVector fourNibbles(
            IntVector v,
            FloatVector x0,
            FloatVector x1,
            FloatVector x2,
            FloatVector x3,
            FloatVector sum) {
        sum = toFloats(v.and(15)).fma(x0, sum);
        sum = toFloats(v.lanewise(VectorOperators.LSHR, 8).and(15)).fma(x1, sum);
        sum = toFloats(v.lanewise(VectorOperators.LSHR, 16).and(15)).fma(x2, sum);
        return toFloats(v.lanewise(VectorOperators.LSHR, 24).and(15)).fma(x3, sum);
    }

    static void bytes(MemorySegment weights, long words, float[] x, int xOffset, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = FloatVector.zero(FLOATS);
            FloatVector b = FloatVector.zero(FLOATS);
            for (int q = 0; q < 8; q++) {
                long word = words + 4L * (PANEL * q + n);
                int k = xOffset + 4 * q;
                FloatVector x0 = FloatVector.broadcast(FLOATS, x[k]);
                FloatVector x1 = FloatVector.broadcast(FLOATS, x[k + 1]);
                FloatVector x2 = FloatVector.broadcast(FLOATS, x[k + 2]);
                FloatVector x3 = FloatVector.broadcast(FLOATS, x[k + 3]);
                a = fourBytes(ints(weights, word), x0, x1, x2, x3, a);
                b = fourBytes(ints(weights, word + 4L * LENGTH), x0, x1, x2, x3, b);
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
        }
    }

    private static FloatVector fourBytes(
            IntVector v,
            FloatVector x0,
            FloatVector x1,
            FloatVector x2,
            FloatVector x3,
            FloatVector sum) {
        sum = toFloats(top(v.lanewise(VectorOperators.LSHL, 24))).fma(x0, sum);
        sum = toFloats(top(v.lanewise(VectorOperators.LSHL, 16))).fma(x1, sum);
        sum = toFloats(top(v.lanewise(VectorOperators.LSHL, 8))).fma(x2, sum);
        return toFloats(top(v)).fma(x3, sum);
    }

    private static IntVector top(IntVector v) {
        return v.lanewise(VectorOperators.ASHR, 24);
    }
}
