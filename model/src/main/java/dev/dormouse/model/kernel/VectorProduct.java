package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.FLOATS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.floats;

import jdk.incubator.vector.FloatVector;

/**
 * Products of rows and a tile, with all sums in registers.
 *
 * <p>Vectors lie along the outputs, so that every lane is one sum. Six rows by two
 * vectors are twelve sums, enough to hide the latency of the multiply-add, and leave registers for
 * two tile vectors and a broadcast among the 16 that AVX2 has.
 */
final class VectorProduct {
    private VectorProduct() {}

    static void product(float[] tile, int tileOffset, float[] x, int xOffset, int rows, float[] out) {
        if (rows <= 3) {
            for (int n = 0; n < TILE; n += 2 * LENGTH) {
                threeRows(tile, tileOffset + n, x, xOffset, out, n);
            }
        } else {
            for (int n = 0; n < TILE; n += 2 * LENGTH) {
                sixRows(tile, tileOffset + n, x, xOffset, out, n);
            }
        }
    }

    private static void sixRows(
            float[] tile, int tileOffset, float[] x, int xOffset, float[] out, int n) {
        FloatVector a0 = FloatVector.zero(FLOATS), b0 = FloatVector.zero(FLOATS);
        FloatVector a1 = FloatVector.zero(FLOATS), b1 = FloatVector.zero(FLOATS);
        FloatVector a2 = FloatVector.zero(FLOATS), b2 = FloatVector.zero(FLOATS);
        FloatVector a3 = FloatVector.zero(FLOATS), b3 = FloatVector.zero(FLOATS);
        FloatVector a4 = FloatVector.zero(FLOATS), b4 = FloatVector.zero(FLOATS);
        FloatVector a5 = FloatVector.zero(FLOATS), b5 = FloatVector.zero(FLOATS);
        for (int k = 0; k < TILE; k++) {
            FloatVector a = floats(tile, tileOffset + k * TILE);
            FloatVector b = floats(tile, tileOffset + k * TILE + LENGTH);
            FloatVector row = FloatVector.broadcast(FLOATS, x[xOffset + k]);
            a0 = row.fma(a, a0);
            b0 = row.fma(b, b0);
            row = FloatVector.broadcast(FLOATS, x[xOffset + TILE + k]);
            a1 = row.fma(a, a1);
            b1 = row.fma(b, b1);
            row = FloatVector.broadcast(FLOATS, x[xOffset + 2 * TILE + k]);
            a2 = row.fma(a, a2);
            b2 = row.fma(b, b2);
            row = FloatVector.broadcast(FLOATS, x[xOffset + 3 * TILE + k]);
            a3 = row.fma(a, a3);
            b3 = row.fma(b, b3);
            row = FloatVector.broadcast(FLOATS, x[xOffset + 4 * TILE + k]);
            a4 = row.fma(a, a4);
            b4 = row.fma(b, b4);
            row = FloatVector.broadcast(FLOATS, x[xOffset + 5 * TILE + k]);
            a5 = row.fma(a, a5);
            b5 = row.fma(b, b5);
        }
        store(out, n, a0, b0);
        store(out, n + TILE, a1, b1);
        store(out, n + 2 * TILE, a2, b2);
        store(out, n + 3 * TILE, a3, b3);
        store(out, n + 4 * TILE, a4, b4);
        store(out, n + 5 * TILE, a5, b5);
    }

    private static void threeRows(
            float[] tile, int tileOffset, float[] x, int xOffset, float[] out, int n) {
        FloatVector a0 = FloatVector.zero(FLOATS), b0 = FloatVector.zero(FLOATS);
        FloatVector a1 = FloatVector.zero(FLOATS), b1 = FloatVector.zero(FLOATS);
        FloatVector a2 = FloatVector.zero(FLOATS), b2 = FloatVector.zero(FLOATS);
        for (int k = 0; k < TILE; k++) {
            FloatVector a = floats(tile, tileOffset + k * TILE);
            FloatVector b = floats(tile, tileOffset + k * TILE + LENGTH);
            FloatVector row = FloatVector.broadcast(FLOATS, x[xOffset + k]);
            a0 = row.fma(a, a0);
            b0 = row.fma(b, b0);
            row = FloatVector.broadcast(FLOATS, x[xOffset + TILE + k]);
            a1 = row.fma(a, a1);
            b1 = row.fma(b, b1);
            row = FloatVector.broadcast(FLOATS, x[xOffset + 2 * TILE + k]);
            a2 = row.fma(a, a2);
            b2 = row.fma(b, b2);
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
