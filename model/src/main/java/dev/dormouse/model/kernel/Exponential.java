package dev.dormouse.model.kernel;

/**
 * The constants of {@code exp}, for all kernels alike.
 *
 * <p>{@code exp(x) = 2^n * exp(r)} with {@code n = round(x / ln 2)} and {@code |r| <= ln(2) / 2};
 * the polynomial and the split of ln 2 are those of Cephes' {@code expf}. The argument is clamped
 * to where {@code 2^n} is a normal number, so the result is never 0 or infinite. {@code exp(0)} is
 * exactly 1.
 */
public final class Exponential {
    static final float LOWEST = -87.33654f;
    static final float HIGHEST = 88.0f;
    static final float LOG2_E = 1.442695f;
    static final float LN2_HIGH = 0x1.63p-1f;
    static final float LN2_LOW = -2.1219444E-4f;

    /** Adding it to a float below 2^22 rounds that float to an integer in the lowest bits. */
    static final float ROUND = 0x1.8p23f;

    static final int EXPONENT_BIAS = 127;
    static final int MANTISSA_BITS = 23;
    static final float P0 = 1.9875691E-4f;
    static final float P1 = 0.0013981999f;
    static final float P2 = 0.008333452f;
    static final float P3 = 0.041665796f;
    static final float P4 = 0.16666666f;
    static final float P5 = 0.5f;

    private Exponential() {}

    /** {@code e} to the power of {@code value}, to about one unit in the last place. */
    public static float exp(float value) {
        float x = value < LOWEST ? LOWEST : value > HIGHEST ? HIGHEST : value;
        float shifted = Math.fma(x, LOG2_E, ROUND);
        float n = shifted - ROUND;
        float r = Math.fma(n, -LN2_HIGH, x);
        r = Math.fma(n, -LN2_LOW, r);
        float p = Math.fma(P0, r, P1);
        p = Math.fma(p, r, P2);
        p = Math.fma(p, r, P3);
        p = Math.fma(p, r, P4);
        p = Math.fma(p, r, P5);
        p = Math.fma(p, r * r, r) + 1.0f;
        int scale = (Float.floatToRawIntBits(shifted) + EXPONENT_BIAS) << MANTISSA_BITS;
        return p * Float.intBitsToFloat(scale);
    }
}
