package dev.dormouse.model.kernel;

/**
 * The order of sums along a row.
 *
 * <p>Element {@code i} is added to partial sum {@code i % 16}, in the order of {@code i}; then the
 * upper half of the partial sums is added to the lower half, until one is left. Sixteen is the
 * widest vector, so that narrower ones can keep the same order.
 */
public final class Lanes {
    static final int COUNT = 16;

    private Lanes() {}

    /** The sum of 32 elements. */
    public static float sum(float[] v, int at) {
        float s0 = v[at] + v[at + 16] + (v[at + 8] + v[at + 24]);
        float s1 = v[at + 1] + v[at + 17] + (v[at + 9] + v[at + 25]);
        float s2 = v[at + 2] + v[at + 18] + (v[at + 10] + v[at + 26]);
        float s3 = v[at + 3] + v[at + 19] + (v[at + 11] + v[at + 27]);
        float s4 = v[at + 4] + v[at + 20] + (v[at + 12] + v[at + 28]);
        float s5 = v[at + 5] + v[at + 21] + (v[at + 13] + v[at + 29]);
        float s6 = v[at + 6] + v[at + 22] + (v[at + 14] + v[at + 30]);
        float s7 = v[at + 7] + v[at + 23] + (v[at + 15] + v[at + 31]);
        return s0 + s4 + (s2 + s6) + (s1 + s5 + (s3 + s7));
    }

    /** The greatest of {@code count} elements. */
    static float maximum(float[] v, int at, int count) {
        float first = v[at];
        float second = first;
        int i = 1;
        for (; i < count - 1; i += 2) {
            first = Math.max(first, v[at + i]);
            second = Math.max(second, v[at + i + 1]);
        }
        return Math.max(Math.max(first, second), v[at + count - 1]);
    }

    /** Adds up 16 partial sums; overwrites them. */
    static float fold(float[] partial, int at) {
        for (int half = COUNT / 2; half > 0; half /= 2) {
            for (int i = at; i < at + half; i++) {
                partial[i] += partial[i + half];
            }
        }
        return partial[at];
    }
}
