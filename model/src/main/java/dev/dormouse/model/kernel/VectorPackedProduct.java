package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;

import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/**
 * Products of one or two rows and packed quants, which never leave the registers.
 *
 * <p>The order of the multiply-adds is that of {@link VectorProduct}. Quants are masked out of
 * their words but not shifted down, so they are too large by a power of two; the rows, prepared
 * once, are too small by the same. Both are exact, as long as no element of a row is below {@code
 * 2^-100}.
 */
final class VectorPackedProduct {
    static final IntVector TOP_BYTE = IntVector.broadcast(INTS, 0xFF000000);

    private VectorPackedProduct() {}

    /** What the element {@code k} of a row's block has to be multiplied by. */
    static float factor(TensorType type, int k) {
        return switch (type) {
            case Q4_0, Q4_1, Q4_K -> (k % 2 == 0 ? 1.0f : 0x1p-8f) * (k < 16 ? 1.0f : 0x1p-4f);
            case Q8_0, Q5_0, Q5_1, Q5_K, Q6_K -> 0x1p-24f;
            case F32, F16, BF16 -> 1.0f;
        };
    }

    /** For one row. Inputs 0 to 15 are the low nibbles of the words' bytes, 16 to 31 the high. */
    static void nibbles(MemorySegment weights, long words, float[] x, int at, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            for (int shift = 0; shift < 8; shift += 4) {
                IntVector even = IntVector.broadcast(INTS, 0xF << shift);
                IntVector odd = IntVector.broadcast(INTS, 0xF00 << shift);
                for (int j = 0; j < 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    int k = at + 4 * shift + 4 * j;
                    FloatVector x0 = all(x[k]);
                    a = toFloats(v.and(even)).fma(x0, a);
                    b = toFloats(w.and(even)).fma(x0, b);
                    FloatVector x1 = all(x[k + 1]);
                    a = toFloats(v.and(odd)).fma(x1, a);
                    b = toFloats(w.and(odd)).fma(x1, b);
                    v = v.lanewise(LSHR, 16);
                    w = w.lanewise(LSHR, 16);
                    FloatVector x2 = all(x[k + 2]);
                    a = toFloats(v.and(even)).fma(x2, a);
                    b = toFloats(w.and(even)).fma(x2, b);
                    FloatVector x3 = all(x[k + 3]);
                    a = toFloats(v.and(odd)).fma(x3, a);
                    b = toFloats(w.and(odd)).fma(x3, b);
                }
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
        }
    }

    /** For two rows. */
    static void nibbles(
            MemorySegment weights, long words, float[] x, int at, int second, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            FloatVector c = all(0.0f);
            FloatVector d = all(0.0f);
            for (int shift = 0; shift < 8; shift += 4) {
                IntVector even = IntVector.broadcast(INTS, 0xF << shift);
                IntVector odd = IntVector.broadcast(INTS, 0xF00 << shift);
                for (int j = 0; j < 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    int k = 4 * shift + 4 * j;
                    for (int i = k; i < k + 4; i += 2) {
                        FloatVector p = toFloats(v.and(even));
                        FloatVector q = toFloats(w.and(even));
                        FloatVector x0 = all(x[at + i]);
                        FloatVector y0 = all(x[second + i]);
                        a = p.fma(x0, a);
                        b = q.fma(x0, b);
                        c = p.fma(y0, c);
                        d = q.fma(y0, d);
                        p = toFloats(v.and(odd));
                        q = toFloats(w.and(odd));
                        FloatVector x1 = all(x[at + i + 1]);
                        FloatVector y1 = all(x[second + i + 1]);
                        a = p.fma(x1, a);
                        b = q.fma(x1, b);
                        c = p.fma(y1, c);
                        d = q.fma(y1, d);
                        v = v.lanewise(LSHR, 16);
                        w = w.lanewise(LSHR, 16);
                    }
                }
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
            c.intoArray(out, PANEL + n);
            d.intoArray(out, PANEL + n + LENGTH);
        }
    }

    /** For one row. */
    static void bytes(MemorySegment weights, long words, float[] x, int at, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            for (int j = 0; j < 8; j++) {
                IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                int k = at + 4 * j;
                FloatVector x0 = all(x[k]);
                a = toFloats(v.and(TOP_BYTE)).fma(x0, a);
                b = toFloats(w.and(TOP_BYTE)).fma(x0, b);
                FloatVector x1 = all(x[k + 1]);
                a = toFloats(v.lanewise(LSHL, 8).and(TOP_BYTE)).fma(x1, a);
                b = toFloats(w.lanewise(LSHL, 8).and(TOP_BYTE)).fma(x1, b);
                FloatVector x2 = all(x[k + 2]);
                a = toFloats(v.lanewise(LSHL, 16).and(TOP_BYTE)).fma(x2, a);
                b = toFloats(w.lanewise(LSHL, 16).and(TOP_BYTE)).fma(x2, b);
                FloatVector x3 = all(x[k + 3]);
                a = toFloats(v.lanewise(LSHL, 24)).fma(x3, a);
                b = toFloats(w.lanewise(LSHL, 24)).fma(x3, b);
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
        }
    }

    /** For two rows. */
    static void bytes(
            MemorySegment weights, long words, float[] x, int at, int second, float[] out) {
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            FloatVector a = all(0.0f);
            FloatVector b = all(0.0f);
            FloatVector c = all(0.0f);
            FloatVector d = all(0.0f);
            for (int j = 0; j < 8; j++) {
                IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                for (int i = 4 * j; i < 4 * j + 4; i += 2) {
                    FloatVector p = toFloats(v.and(TOP_BYTE));
                    FloatVector q = toFloats(w.and(TOP_BYTE));
                    FloatVector x0 = all(x[at + i]);
                    FloatVector y0 = all(x[second + i]);
                    a = p.fma(x0, a);
                    b = q.fma(x0, b);
                    c = p.fma(y0, c);
                    d = q.fma(y0, d);
                    p = toFloats(v.lanewise(LSHL, 8).and(TOP_BYTE));
                    q = toFloats(w.lanewise(LSHL, 8).and(TOP_BYTE));
                    FloatVector x1 = all(x[at + i + 1]);
                    FloatVector y1 = all(x[second + i + 1]);
                    a = p.fma(x1, a);
                    b = q.fma(x1, b);
                    c = p.fma(y1, c);
                    d = q.fma(y1, d);
                    v = v.lanewise(LSHL, 16);
                    w = w.lanewise(LSHL, 16);
                }
            }
            a.intoArray(out, n);
            b.intoArray(out, n + LENGTH);
            c.intoArray(out, PANEL + n);
            d.intoArray(out, PANEL + n + LENGTH);
        }
    }
}
