package dev.dormouse.model.kernel;

import dev.dormouse.model.gguf.TensorType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;

/**
 * Random tensors as a GGUF file holds them, and their values in double precision.
 *
 * <p>Written from ggml's block definitions alone, so that packing and reading are tested against
 * something else than themselves.
 */
public final class TensorBytes {
    private TensorBytes() {}

    /** Rows of {@code width} elements of about {@code scale} in size. */
    public static byte[] random(
            TensorType type, int rows, int width, float scale, SplittableRandom random) {
        int elements = rows * width;
        ByteBuffer out =
                ByteBuffer.allocate((int) type.bytesFor(elements)).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < elements / type.blockElements(); i++) {
            float value = (float) (random.nextDouble() * 2 - 1) * scale;
            switch (type) {
                case F32 -> out.putFloat(value);
                case F16 -> out.putShort(Float.floatToFloat16(value));
                case BF16 -> out.putShort((short) (Float.floatToRawIntBits(value) >>> 16));
                case Q8_0 -> block(out, value / 100, 0, 1, 32, random);
                case Q4_0 -> block(out, value / 8, 0, 1, 16, random);
                case Q4_1 -> block(out, value / 8, -Math.abs(value), 2, 16, random);
                case Q5_0 -> block(out, value / 16, 0, 1, 20, random);
                case Q5_1 -> block(out, value / 16, -Math.abs(value), 2, 20, random);
                case Q4_K -> block(out, value / 512, value / 64, 2, 140, random);
                case Q5_K -> block(out, value / 1024, value / 64, 2, 172, random);
                case Q6_K -> {
                    byte[] quants = new byte[208];
                    random.nextBytes(quants);
                    out.put(quants).putShort(Float.floatToFloat16(value / 2048));
                }
            }
        }
        return out.array();
    }

    private static void block(
            ByteBuffer out,
            float scale,
            float minimum,
            int halves,
            int bytes,
            SplittableRandom random) {
        out.putShort(Float.floatToFloat16(scale));
        if (halves == 2) {
            out.putShort(Float.floatToFloat16(minimum));
        }
        byte[] quants = new byte[bytes];
        random.nextBytes(quants);
        out.put(quants);
    }

    /** The element {@code index} of the tensor. */
    public static double value(TensorType type, byte[] tensor, int index) {
        ByteBuffer in = ByteBuffer.wrap(tensor).order(ByteOrder.LITTLE_ENDIAN);
        int block = index / type.blockElements() * type.blockBytes();
        int i = index % type.blockElements();
        return switch (type) {
            case F32 -> in.getFloat(block);
            case F16 -> Float.float16ToFloat(in.getShort(block));
            case BF16 -> Float.intBitsToFloat(in.getShort(block) << 16);
            case Q8_0 -> half(in, block) * in.get(block + 2 + i);
            case Q4_0 -> half(in, block) * (nibble(in, block + 2, i) - 8);
            case Q4_1 -> half(in, block) * nibble(in, block + 4, i) + half(in, block + 2);
            case Q5_0 ->
                    half(in, block) * (nibble(in, block + 6, i) + fifth(in, block + 2, i) - 16);
            case Q5_1 ->
                    half(in, block) * (nibble(in, block + 8, i) + fifth(in, block + 4, i))
                            + half(in, block + 2);
            case Q4_K ->
                    scale(in, block, i, false) * longNibble(in, block + 16, i)
                            - scale(in, block, i, true);
            case Q5_K -> {
                int high = (in.get(block + 16 + i % 32) >> (i / 32) & 1) << 4;
                yield scale(in, block, i, false) * (longNibble(in, block + 48, i) + high)
                        - scale(in, block, i, true);
            }
            case Q6_K -> {
                int low = in.get(block + i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4) & 15;
                int high = in.get(block + 128 + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
                yield half(in, block + 208) * in.get(block + 192 + i / 16) * (low + 16 * high - 32);
            }
        };
    }

    private static int fifth(ByteBuffer in, int at, int i) {
        return (in.getInt(at) >> i & 1) << 4;
    }

    private static int longNibble(ByteBuffer in, int at, int i) {
        return in.get(at + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15;
    }

    /** The scale, or the minimum, of an element's group of 32. */
    private static double scale(ByteBuffer in, int block, int i, boolean minimum) {
        int group = i / 32;
        int six = block + 4 + (minimum ? 4 : 0);
        int bits;
        if (group < 4) {
            bits = in.get(six + group) & 63;
        } else {
            int low = in.get(block + 8 + group) >> (minimum ? 4 : 0) & 15;
            bits = low + ((in.get(six + group - 4) & 0xff) >> 6) * 16;
        }
        return half(in, block + (minimum ? 2 : 0)) * bits;
    }

    private static double half(ByteBuffer in, int at) {
        return Float.float16ToFloat(in.getShort(at));
    }

    private static int nibble(ByteBuffer in, int at, int i) {
        return i < 16 ? in.get(at + i) & 15 : (in.get(at + i - 16) >>> 4) & 15;
    }
}
