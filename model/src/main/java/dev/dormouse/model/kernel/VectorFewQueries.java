package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.halves;
import static dev.dormouse.model.kernel.VectorShapes.lowerHalves;
import static dev.dormouse.model.kernel.VectorShapes.shorts;
import static dev.dormouse.model.kernel.VectorShapes.upperHalves;
import static jdk.incubator.vector.VectorOperators.LSHL;

import dev.dormouse.model.KvType;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/**
 * Products of up to four rows with K and V of the cache, which are widened in registers: for so few
 * rows, making tiles of them would take longer than the products.
 *
 * <p>The order of the multiply-adds is that of {@link VectorProduct}.
 */
final class VectorFewQueries {
    private VectorFewQueries() {}

    /**
     * Scores a vector of tokens.
     *
     * @param words pairs of K's elements, {@code [pair][token]}
     * @param t the first token
     */
    static void scores(
            int[] words,
            KvType type,
            int blocks,
            float[] x,
            int at,
            int stride,
            float[] out,
            int t) {
        FloatVector a = all(0.0f);
        FloatVector b = a;
        FloatVector c = a;
        FloatVector d = a;
        for (int block = 0; block < blocks; block++) {
            int first = block * TILE / 2 * TILE + t;
            int row = at + block * stride;
            for (int i = 0; i < TILE / 2; i++) {
                IntVector pair = IntVector.fromArray(INTS, words, first + i * TILE);
                int k = row + 2 * i;
                FloatVector low =
                        switch (type) {
                            case F16 -> lowerHalves(pair);
                            case BF16 -> pair.lanewise(LSHL, 16).reinterpretAsFloats();
                        };
                FloatVector x0 = all(x[k]);
                a = low.fma(x0, a);
                FloatVector y0 = all(x[k + TILE]);
                b = low.fma(y0, b);
                FloatVector z0 = all(x[k + 2 * TILE]);
                c = low.fma(z0, c);
                FloatVector w0 = all(x[k + 3 * TILE]);
                d = low.fma(w0, d);
                FloatVector high =
                        switch (type) {
                            case F16 -> upperHalves(pair);
                            case BF16 -> pair.and(0xFFFF0000).reinterpretAsFloats();
                        };
                FloatVector x1 = all(x[k + 1]);
                a = high.fma(x1, a);
                FloatVector y1 = all(x[k + 1 + TILE]);
                b = high.fma(y1, b);
                FloatVector z1 = all(x[k + 1 + 2 * TILE]);
                c = high.fma(z1, c);
                FloatVector w1 = all(x[k + 1 + 3 * TILE]);
                d = high.fma(w1, d);
            }
        }
        a.intoArray(out, t);
        b.intoArray(out, TILE + t);
        c.intoArray(out, 2 * TILE + t);
        d.intoArray(out, 3 * TILE + t);
    }

    /**
     * Adds up two vectors of V's elements, each token's times its weight.
     *
     * @param from from a token's offset to the first element
     * @param n where the vectors lie in the results
     */
    static void sums(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            long from,
            float[] weights,
            float[] out,
            int n) {
        FloatVector a0 = all(0.0f);
        FloatVector a1 = a0;
        FloatVector a2 = a0;
        FloatVector a3 = a0;
        FloatVector b0 = a0;
        FloatVector b1 = a0;
        FloatVector b2 = a0;
        FloatVector b3 = a0;
        for (int t = 0; t < tokens; t++) {
            long at = offsets[t] + from;
            FloatVector a = element(cache, type, at);
            FloatVector b = element(cache, type, at + (long) type.bytes() * LENGTH);
            FloatVector w0 = all(weights[t]);
            a0 = a.fma(w0, a0);
            b0 = b.fma(w0, b0);
            FloatVector w1 = all(weights[t + TILE]);
            a1 = a.fma(w1, a1);
            b1 = b.fma(w1, b1);
            FloatVector w2 = all(weights[t + 2 * TILE]);
            a2 = a.fma(w2, a2);
            b2 = b.fma(w2, b2);
            FloatVector w3 = all(weights[t + 3 * TILE]);
            a3 = a.fma(w3, a3);
            b3 = b.fma(w3, b3);
        }
        a0.intoArray(out, n);
        b0.intoArray(out, n + LENGTH);
        a1.intoArray(out, n + TILE);
        b1.intoArray(out, n + TILE + LENGTH);
        a2.intoArray(out, n + 2 * TILE);
        b2.intoArray(out, n + 2 * TILE + LENGTH);
        a3.intoArray(out, n + 3 * TILE);
        b3.intoArray(out, n + 3 * TILE + LENGTH);
    }

    private static FloatVector element(MemorySegment cache, KvType type, long at) {
        IntVector bits = shorts(cache, at);
        return switch (type) {
            case F16 -> halves(bits.lanewise(LSHL, 13));
            case BF16 -> bits.lanewise(LSHL, 16).reinterpretAsFloats();
        };
    }
}
