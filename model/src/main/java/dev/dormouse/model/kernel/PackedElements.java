package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;
import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Reads a {@link PackedMatrix} one element at a time. */
public final class PackedElements {
    private static final ValueLayout.OfInt WORD =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private PackedElements() {}

    /** Writes the weights of one output, {@code scale * quant + minimum}, from {@code to} on. */
    public static void readRow(
            PackedMatrix matrix, MemorySegment weights, int output, float[] out, int to) {
        int n = output % PANEL;
        for (int b = 0; b < matrix.blocks(); b++) {
            long block = matrix.blockOffset(output / PANEL, b);
            float scale = scale(matrix, weights, block, n);
            float minimum = minimum(matrix, weights, block, n);
            for (int k = 0; k < BLOCK; k++) {
                out[to + b * BLOCK + k] = scale * quant(matrix, weights, block, n, k) + minimum;
            }
        }
    }

    static float scale(PackedMatrix matrix, MemorySegment weights, long block, int n) {
        return switch (matrix.type()) {
            case F32, F16, BF16, Q6_K -> 1.0f;
            case Q8_0, Q5_0, Q4_0, Q4_1 ->
                    Float.float16ToFloat(weights.get(HALF, block + (long) n * matrix.headBytes()));
            case Q5_1, Q4_K, Q5_K -> weights.get(FLOAT, block + 4L * n);
        };
    }

    static float minimum(PackedMatrix matrix, MemorySegment weights, long block, int n) {
        return switch (matrix.type()) {
            case F32, F16, BF16, Q8_0, Q5_0, Q6_K -> 0.0f;
            case Q4_0 -> -8.0f * scale(matrix, weights, block, n);
            case Q4_1 -> Float.float16ToFloat(weights.get(HALF, block + 4L * n + 2));
            case Q5_1, Q4_K, Q5_K -> weights.get(FLOAT, block + 4L * (PANEL + n));
        };
    }

    static float quant(PackedMatrix matrix, MemorySegment weights, long block, int n, int k) {
        long words = matrix.wordOffset(block) + 4L * n;
        return switch (matrix.type()) {
            case F32 -> Float.intBitsToFloat(word(weights, words, k));
            case F16 ->
                    Float.float16ToFloat((short) (word(weights, words, k / 2) >> (16 * (k % 2))));
            case BF16 ->
                    Float.intBitsToFloat((word(weights, words, k / 2) >> (16 * (k % 2))) << 16);
            case Q8_0, Q5_0, Q5_1, Q5_K -> signedByte(weights, words, k);
            case Q6_K -> {
                float scale = weights.get(FLOAT, block + 4L * (k / 16 * PANEL + n));
                yield scale * signedByte(weights, words, k);
            }
            case Q4_0, Q4_1, Q4_K -> {
                // The low nibbles of 16 bytes are inputs 0 to 15, the high ones 16 to 31.
                int shift = k % 4 * 8 + k / 16 * 4;
                yield (word(weights, words, k % 16 / 4) >>> shift) & 15;
            }
        };
    }

    private static int signedByte(MemorySegment weights, long words, int k) {
        return (word(weights, words, k / 4) << (8 * (k % 4))) >> 24;
    }

    private static int word(MemorySegment weights, long words, int j) {
        return weights.get(WORD, words + 4L * PANEL * j);
    }
}
