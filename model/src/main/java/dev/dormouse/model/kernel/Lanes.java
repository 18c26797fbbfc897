package dev.dormouse.model.kernel;

/**
 * The order of sums along a row.
 *
 * <p>Element {@code i} is added to partial sum {@code i % 16}, in the order of {@code i}; then the
 * upper half of the partial sums is added to the lower half, until one is left. Sixteen is the widest
 * vector, so that narrower ones can keep the same order.
 */
final class Lanes {
    static final int COUNT = 16;

    private Lanes() {}

    /** Adds up 16 partial sums; overwrites them. */
    static float fold(float[] partial) {
        for (int half = COUNT / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; i++) {
                partial[i] += partial[i + half];
            }
        }
        return partial[0];
    }
}
