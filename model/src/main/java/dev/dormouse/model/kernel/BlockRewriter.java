package dev.dormouse.model.kernel;

import dev.dormouse.model.gguf.TensorType;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Rewrites blocks of 32 elements of the types that a {@link PackedMatrix} does not keep as they are
 * in a file, without loss: every scale and minimum is exact in single precision.
 *
 * <p>The layouts are those of {@code ggml-common.h}; what they mean, {@code dequantize_row_*} in
 * ggml's {@code ggml-quants.c}.
 */
final class BlockRewriter {
    private static final VarHandle HALF =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle FLOAT =
            MethodHandles.byteArrayViewVarHandle(float[].class, ByteOrder.LITTLE_ENDIAN);

    /** Blocks of 32 in a block of the K types. */
    private static final int GROUPS = 8;

    private BlockRewriter() {}

    static boolean rewrites(TensorType type) {
        return switch (type) {
            case F32, F16, BF16, Q8_0, Q4_0, Q4_1 -> false;
            case Q5_0, Q5_1, Q4_K, Q5_K, Q6_K -> true;
        };
    }

    /**
     * Rewrites one block: head, then words, both in the order of a packed block but for the
     * transposition.
     *
     * @param stored a row as in the file
     * @param block which 32 elements of it
     */
    static void rewrite(TensorType type, byte[] stored, int block, byte[] out, int to) {
        switch (type) {
            case Q5_0 -> rewriteQ50(stored, block * type.blockBytes(), out, to);
            case Q5_1 -> rewriteQ51(stored, block * type.blockBytes(), out, to);
            case Q4_K, Q5_K, Q6_K -> {
                int start = block / GROUPS * type.blockBytes();
                int group = block % GROUPS;
                if (type == TensorType.Q4_K) {
                    rewriteQ4K(stored, start, group, out, to);
                } else if (type == TensorType.Q5_K) {
                    rewriteQ5K(stored, start, group, out, to);
                } else {
                    rewriteQ6K(stored, start, group, out, to);
                }
            }
            case F32, F16, BF16, Q8_0, Q4_0, Q4_1 ->
                    throw new IllegalArgumentException("rewrite block: kept as it is: " + type);
        }
    }

    private static void rewriteQ50(byte[] in, int start, byte[] out, int to) {
        HALF.set(out, to, (short) HALF.get(in, start));
        fiveBits(in, start + 2, 16, out, to + 2);
    }

    private static void rewriteQ51(byte[] in, int start, byte[] out, int to) {
        FLOAT.set(out, to, half(in, start));
        FLOAT.set(out, to + 4, half(in, start + 2));
        fiveBits(in, start + 4, 0, out, to + 8);
    }

    /** Four bytes of fifth bits, then 16 of nibbles: the low ones are elements 0 to 15. */
    private static void fiveBits(byte[] in, int start, int subtrahend, byte[] out, int to) {
        int high = (int) WORD.get(in, start);
        for (int i = 0; i < 16; i++) {
            int low = in[start + 4 + i];
            out[to + i] = (byte) (((low & 15) | (high >>> i & 1) << 4) - subtrahend);
            out[to + 16 + i] =
                    (byte) (((low >>> 4 & 15) | (high >>> (16 + i) & 1) << 4) - subtrahend);
        }
    }

    private static void rewriteQ4K(byte[] in, int start, int group, byte[] out, int to) {
        writeScaleAndMinimum(in, start, group, out, to);
        int nibbles = start + 16 + group / 2 * 32;
        int shift = group % 2 * 4;
        for (int i = 0; i < 16; i++) {
            int low = in[nibbles + i] >>> shift & 15;
            int high = in[nibbles + 16 + i] >>> shift & 15;
            out[to + 8 + i] = (byte) (low | high << 4);
        }
    }

    private static void rewriteQ5K(byte[] in, int start, int group, byte[] out, int to) {
        writeScaleAndMinimum(in, start, group, out, to);
        int high = start + 16;
        int nibbles = start + 48 + group / 2 * 32;
        int shift = group % 2 * 4;
        for (int i = 0; i < 32; i++) {
            int fifth = in[high + i] >>> group & 1;
            out[to + 8 + i] = (byte) ((in[nibbles + i] >>> shift & 15) | fifth << 4);
        }
    }

    /**
     * The head of the K types with minima: factors of scales and minima, then 12 bytes with six
     * bits of each for eight groups. Groups 4 to 7 have their upper two bits where groups 0 to 3
     * leave some.
     */
    private static void writeScaleAndMinimum(byte[] in, int start, int group, byte[] out, int to) {
        int at = start + 4;
        int scale;
        int minimum;
        if (group < 4) {
            scale = in[at + group] & 63;
            minimum = in[at + group + 4] & 63;
        } else {
            scale = (in[at + group + 4] & 15) | (in[at + group - 4] >>> 6 & 3) << 4;
            minimum = (in[at + group + 4] >>> 4 & 15) | (in[at + group] >>> 6 & 3) << 4;
        }
        FLOAT.set(out, to, half(in, start) * scale);
        FLOAT.set(out, to + 4, -(half(in, start + 2) * minimum));
    }

    /** Nibbles, pairs of bits, scales, factor; elements 0 to 127 lie before 128 to 255 in each. */
    private static void rewriteQ6K(byte[] in, int start, int group, byte[] out, int to) {
        int quarter = group % 4;
        int nibbles = start + group / 4 * 64 + quarter % 2 * 32;
        int pairs = start + 128 + group / 4 * 32;
        int scales = start + 192 + 2 * group;
        float factor = half(in, start + 208);
        FLOAT.set(out, to, factor * in[scales]);
        FLOAT.set(out, to + 4, factor * in[scales + 1]);
        for (int i = 0; i < 32; i++) {
            int low = in[nibbles + i] >>> (quarter / 2 * 4) & 15;
            int high = in[pairs + i] >>> (2 * quarter) & 3;
            out[to + 8 + i] = (byte) ((low | high << 4) - 32);
        }
    }

    private static float half(byte[] in, int at) {
        return Float.float16ToFloat((short) HALF.get(in, at));
    }
}
