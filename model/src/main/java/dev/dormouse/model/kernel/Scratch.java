package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;

import java.util.Arrays;

/**
 * What one thread needs besides rows and weights to multiply matrices; grows with the rows of a
 * step, then is reused.
 */
final class Scratch {
    final float[] tile = new float[TILE * TILE];
    final float[] heads = new float[2 * TILE];
    final float[] product = new float[BlockedRows.GROUP * TILE];
    private float[] sums = new float[0];

    /** Zeros for {@code rows} rows of 32 sums. */
    float[] zeroedSums(int rows) {
        if (sums.length < rows * TILE) {
            sums = new float[rows * TILE];
        } else {
            Arrays.fill(sums, 0, rows * TILE, 0.0f);
        }
        return sums;
    }
}
