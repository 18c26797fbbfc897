package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;

import jdk.incubator.vector.FloatVector;

/**
 * Products of rows and tiles, with all sums in registers.
 *
 * <p>Vectors lie along the outputs, so that every lane is one sum. Six rows by two vectors are
 * twelve sums, enough to hide the latency of the multiply-add, and leave registers for two tile
 * vectors and a broadcast among the 16 that AVX2 has.
 */
final class VectorProduct {
    private VectorProduct() {}

    static void product(
            float[] tiles,
            int tileOffset,
            int blocks,
            float[] x,
            int xOffset,
            int xStride,
            int rows,
            float[] out) {
        for (int n = 0; n < TILE; n += 2 * LENGTH) {
            if (rows <= 3) {
                threeRows(tiles, tileOffset + n, blocks, x, xOffset, xStride, out, n);
            } else if (rows == 4) {
                fourRows(tiles, tileOffset + n, blocks, x, xOffset, xStride, out, n);
            } else {
                sixRows(tiles, tileOffset + n, blocks, x, xOffset, xStride, out, n);
            }
        }
    }

    private static void sixRows(
            float[] tiles,
            int tile,
            int blocks,
            float[] x,
            int at,
            int stride,
            float[] out,
            int n) {
        FloatVector a0 = all(0.0f);
        FloatVector a1 = all(0.0f);
        FloatVector a2 = all(0.0f);
        FloatVector a3 = all(0.0f);
        FloatVector a4 = all(0.0f);
        FloatVector a5 = all(0.0f);
        FloatVector b0 = all(0.0f);
        FloatVector b1 = all(0.0f);
        FloatVector b2 = all(0.0f);
        FloatVector b3 = all(0.0f);
        FloatVector b4 = all(0.0f);
        FloatVector b5 = all(0.0f);
        for (int block = 0; block < blocks; block++) {
            int w = tile + block * TILE * TILE;
            int row = at + block * stride;
            for (int k = 0; k < TILE; k++) {
                FloatVector a = floats(tiles, w + k * TILE);
                FloatVector b = floats(tiles, w + k * TILE + LENGTH);
                FloatVector x0 = all(x[row + k]);
                a0 = x0.fma(a, a0);
                b0 = x0.fma(b, b0);
                FloatVector x1 = all(x[row + k + TILE]);
                a1 = x1.fma(a, a1);
                b1 = x1.fma(b, b1);
                FloatVector x2 = all(x[row + k + 2 * TILE]);
                a2 = x2.fma(a, a2);
                b2 = x2.fma(b, b2);
                FloatVector x3 = all(x[row + k + 3 * TILE]);
                a3 = x3.fma(a, a3);
                b3 = x3.fma(b, b3);
                FloatVector x4 = all(x[row + k + 4 * TILE]);
                a4 = x4.fma(a, a4);
                b4 = x4.fma(b, b4);
                FloatVector x5 = all(x[row + k + 5 * TILE]);
                a5 = x5.fma(a, a5);
                b5 = x5.fma(b, b5);
            }
        }
        store(out, n, a0, b0);
        store(out, n + TILE, a1, b1);
        store(out, n + 2 * TILE, a2, b2);
        store(out, n + 3 * TILE, a3, b3);
        store(out, n + 4 * TILE, a4, b4);
        store(out, n + 5 * TILE, a5, b5);
    }

    private static void fourRows(
            float[] tiles,
            int tile,
            int blocks,
            float[] x,
            int at,
            int stride,
            float[] out,
            int n) {
        FloatVector a0 = all(0.0f);
        FloatVector a1 = all(0.0f);
        FloatVector a2 = all(0.0f);
        FloatVector a3 = all(0.0f);
        FloatVector b0 = all(0.0f);
        FloatVector b1 = all(0.0f);
        FloatVector b2 = all(0.0f);
        FloatVector b3 = all(0.0f);
        for (int block = 0; block < blocks; block++) {
            int w = tile + block * TILE * TILE;
            int row = at + block * stride;
            for (int k = 0; k < TILE; k++) {
                FloatVector a = floats(tiles, w + k * TILE);
                FloatVector b = floats(tiles, w + k * TILE + LENGTH);
                FloatVector x0 = all(x[row + k]);
                a0 = x0.fma(a, a0);
                b0 = x0.fma(b, b0);
                FloatVector x1 = all(x[row + k + TILE]);
                a1 = x1.fma(a, a1);
                b1 = x1.fma(b, b1);
                FloatVector x2 = all(x[row + k + 2 * TILE]);
                a2 = x2.fma(a, a2);
                b2 = x2.fma(b, b2);
                FloatVector x3 = all(x[row + k + 3 * TILE]);
                a3 = x3.fma(a, a3);
                b3 = x3.fma(b, b3);
            }
        }
        store(out, n, a0, b0);
        store(out, n + TILE, a1, b1);
        store(out, n + 2 * TILE, a2, b2);
        store(out, n + 3 * TILE, a3, b3);
    }

    private static void threeRows(
            float[] tiles,
            int tile,
            int blocks,
            float[] x,
            int at,
            int stride,
            float[] out,
            int n) {
        FloatVector a0 = all(0.0f);
        FloatVector a1 = all(0.0f);
        FloatVector a2 = all(0.0f);
        FloatVector b0 = all(0.0f);
        FloatVector b1 = all(0.0f);
        FloatVector b2 = all(0.0f);
        for (int block = 0; block < blocks; block++) {
            int w = tile + block * TILE * TILE;
            int row = at + block * stride;
            for (int k = 0; k < TILE; k += 2) {
                FloatVector a = floats(tiles, w + k * TILE);
                FloatVector b = floats(tiles, w + k * TILE + LENGTH);
                FloatVector x0 = all(x[row + k]);
                FloatVector x1 = all(x[row + k + TILE]);
                FloatVector x2 = all(x[row + k + 2 * TILE]);
                a0 = x0.fma(a, a0);
                b0 = x0.fma(b, b0);
                a1 = x1.fma(a, a1);
                b1 = x1.fma(b, b1);
                a2 = x2.fma(a, a2);
                b2 = x2.fma(b, b2);
                a = floats(tiles, w + (k + 1) * TILE);
                b = floats(tiles, w + (k + 1) * TILE + LENGTH);
                x0 = all(x[row + k + 1]);
                x1 = all(x[row + k + 1 + TILE]);
                x2 = all(x[row + k + 1 + 2 * TILE]);
                a0 = x0.fma(a, a0);
                b0 = x0.fma(b, b0);
                a1 = x1.fma(a, a1);
                b1 = x1.fma(b, b1);
                a2 = x2.fma(a, a2);
                b2 = x2.fma(b, b2);
            }
        }
        store(out, n, a0, b0);
        store(out, n + TILE, a1, b1);
        store(out, n + 2 * TILE, a2, b2);
    }

    private static void store(float[] out, int n, FloatVector a, FloatVector b) {
        a.intoArray(out, n);
        b.intoArray(out, n + LENGTH);
    }
}
