package dev.dormouse.model;

import java.util.List;

/**
 * Rotates pairs of elements, one of each half of a head, by angles that grow with the position.
 *
 * <p>This is the order of the models' authors, in which vLLM caches keys, too ("NeoX"). Angles are
 * computed in double precision by {@link StrictMath}, so they are the same on every machine.
 */
final class RotaryEmbedding {
    private final int half;
    private final double[] frequencies;
    private float[] cosines = new float[0];
    private float[] sines = new float[0];

    /**
     * @param headDimension elements per head
     * @param dimensions how many of them are rotated, at most all
     * @param divisors of the frequencies, one for each pair; empty for 1
     */
    RotaryEmbedding(int headDimension, int dimensions, float base, List<Double> divisors) {
        half = headDimension / 2;
        frequencies = new double[dimensions / 2];
        for (int i = 0; i < frequencies.length; i++) {
            double divisor = divisors.isEmpty() ? 1 : divisors.get(i);
            frequencies[i] = StrictMath.pow(base, -2.0 * i / dimensions) / divisor;
        }
    }

    /** Makes room for the angles of {@code rows} rows. */
    void reshape(int rows) {
        int angles = Math.multiplyExact(rows, frequencies.length);
        if (cosines.length < angles) {
            cosines = new float[angles];
            sines = new float[angles];
        }
    }

    /** Computes a row's angles. */
    void prepare(int row, int position) {
        for (int i = 0; i < frequencies.length; i++) {
            double angle = position * frequencies[i];
            cosines[row * frequencies.length + i] = (float) StrictMath.cos(angle);
            sines[row * frequencies.length + i] = (float) StrictMath.sin(angle);
        }
    }

    /** Rotates the head that starts at {@code offset}, by the angles of {@code row}. */
    void rotate(float[] values, int offset, int row) {
        int angles = row * frequencies.length;
        for (int i = 0; i < frequencies.length; i++) {
            float cosine = cosines[angles + i];
            float sine = sines[angles + i];
            float first = values[offset + i];
            float second = values[offset + half + i];
            values[offset + i] = first * cosine - second * sine;
            values[offset + half + i] = first * sine + second * cosine;
        }
    }
}
