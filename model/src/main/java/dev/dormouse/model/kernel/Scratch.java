package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;

import java.util.Arrays;

/**
 * What one thread needs besides rows and weights to multiply matrices; grows with the rows of a
 * step, then is reused.
 */
public final class Scratch {
    final float[] tile = new float[TILE * TILE];
    final float[] heads = new float[2 * TILE];
    final float[] product = new float[BlockedRows.GROUP * TILE];
    private float[] sums = new float[0];

    /** Zeros for {@code rows} rows of 32 sums, and for the rest of the last group. */
    float[] zeroedSums(int rows) {
        int groups = (rows + BlockedRows.GROUP - 1) / BlockedRows.GROUP;
        int length = groups * BlockedRows.GROUP * TILE;
        if (sums.length < length) {
            sums = new float[length];
        } else {
            Arrays.fill(sums, 0, length, 0.0f);
        }
        return sums;
    }
}
