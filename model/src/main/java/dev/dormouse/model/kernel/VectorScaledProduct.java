package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorPackedProduct.TOP_BYTE;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;
import static jdk.incubator.vector.VectorOperators.LSHL;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/**
 * As {@link VectorPackedProduct}, for bytes whose scales, one for each half of a block, are part of
 * the quants.
 */
final class VectorScaledProduct {
    private VectorScaledProduct() {}

    /** For one row. */
    static void bytes(MemorySegment weights, long block, float[] x, int at, float[] out) {
        long words = block + 8L * PANEL;
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            for (int half = 0; half < 2; half++) {
                long head = block + 4L * (half * PANEL + n);
                FloatVector s = floats(weights, head);
                FloatVector t = floats(weights, head + 4L * LENGTH);
                for (int j = 4 * half; j < 4 * half + 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    for (int i = at + 4 * j; i < at + 4 * j + 4; i += 2) {
                        FloatVector x0 = all(x[i]);
                        a = toFloats(v.and(TOP_BYTE)).mul(s).fma(x0, a);
                        b = toFloats(w.and(TOP_BYTE)).mul(t).fma(x0, b);
                        v = v.lanewise(LSHL, 8);
                        w = w.lanewise(LSHL, 8);
                        FloatVector x1 = all(x[i + 1]);
                        a = toFloats(v.and(TOP_BYTE)).mul(s).fma(x1, a);
                        b = toFloats(w.and(TOP_BYTE)).mul(t).fma(x1, b);
                        v = v.lanewise(LSHL, 8);
                        w = w.lanewise(LSHL, 8);
                    }
                }
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
        }
    }

    /** For two rows. */
    static void bytes(
            MemorySegment weights, long block, float[] x, int at, int second, float[] out) {
        long words = block + 8L * PANEL;
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            FloatVector c = all(0.0f);
            FloatVector d = all(0.0f);
            for (int half = 0; half < 2; half++) {
                long head = block + 4L * (half * PANEL + n);
                FloatVector s = floats(weights, head);
                FloatVector t = floats(weights, head + 4L * LENGTH);
                for (int j = 4 * half; j < 4 * half + 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    for (int i = 4 * j; i < 4 * j + 4; i++) {
                        FloatVector p = toFloats(v.and(TOP_BYTE)).mul(s);
                        FloatVector q = toFloats(w.and(TOP_BYTE)).mul(t);
                        FloatVector x0 = all(x[at + i]);
                        FloatVector y0 = all(x[second + i]);
                        a = p.fma(x0, a);
                        b = q.fma(x0, b);
                        c = p.fma(y0, c);
                        d = q.fma(y0, d);
                        v = v.lanewise(LSHL, 8);
                        w = w.lanewise(LSHL, 8);
                    }
                }
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
            c.intoArray(out, PANEL + n);
            d.intoArray(out, PANEL + n + LENGTH);
        }
    }
}
