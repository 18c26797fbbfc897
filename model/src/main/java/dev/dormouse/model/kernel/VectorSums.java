package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;

import jdk.incubator.vector.FloatVector;

/** Adds products of quants, with their scales and minima, to sums of weights. */
final class VectorSums {
    private VectorSums() {}

    static void rows(
            float[] product,
            float[] heads,
            float[] sums,
            int sumOffset,
            int rows,
            float[] acc,
            int at) {
        for (int r = 0; r < rows; r++) {
            FloatVector sum = all(sums[sumOffset + r]);
            for (int n = 0; n < TILE; n += LENGTH) {
                int i = r * TILE + n;
                FloatVector scaled = floats(heads, n).fma(floats(product, i), floats(acc, at + i));
                floats(heads, TILE + n).fma(sum, scaled).intoArray(acc, at + i);
            }
        }
    }

    /** Six rows at once, so that scales and minima stay in registers. */
    static void sixRows(
            float[] product, float[] heads, float[] sums, int sumOffset, float[] acc, int at) {
        for (int n = 0; n < TILE; n += LENGTH) {
            FloatVector scale = floats(heads, n);
            FloatVector minimum = floats(heads, TILE + n);
            FloatVector y0 = scale.fma(floats(product, n), floats(acc, at + n));
            minimum.fma(all(sums[sumOffset]), y0).intoArray(acc, at + n);
            FloatVector y1 = scale.fma(floats(product, TILE + n), floats(acc, at + TILE + n));
            minimum.fma(all(sums[sumOffset + 1]), y1).intoArray(acc, at + TILE + n);
            FloatVector y2 =
                    scale.fma(floats(product, 2 * TILE + n), floats(acc, at + 2 * TILE + n));
            minimum.fma(all(sums[sumOffset + 2]), y2).intoArray(acc, at + 2 * TILE + n);
            FloatVector y3 =
                    scale.fma(floats(product, 3 * TILE + n), floats(acc, at + 3 * TILE + n));
            minimum.fma(all(sums[sumOffset + 3]), y3).intoArray(acc, at + 3 * TILE + n);
            FloatVector y4 =
                    scale.fma(floats(product, 4 * TILE + n), floats(acc, at + 4 * TILE + n));
            minimum.fma(all(sums[sumOffset + 4]), y4).intoArray(acc, at + 4 * TILE + n);
            FloatVector y5 =
                    scale.fma(floats(product, 5 * TILE + n), floats(acc, at + 5 * TILE + n));
            minimum.fma(all(sums[sumOffset + 5]), y5).intoArray(acc, at + 5 * TILE + n);
        }
    }
}
