package dev.dormouse.model.kernel;

import dev.dormouse.model.gguf.TensorType;

/**
 * Where a weight matrix lies in the weight region, and in which order.
 *
 * <p>Outputs are cut into panels of 32, the last one padded with zeros, and inputs into blocks of
 * 32. A panel's blocks lie one behind the other. A block holds the heads of its 32 outputs, then
 * its words, {@code word[j][output]}, so that a vector of neighbouring words belongs to
 * neighbouring outputs.
 *
 * <p>Most types keep the head and the words that an output's block has in a GGUF file: a half
 * precision scale for {@code Q8_0} and {@code Q4_0}, a scale and a minimum for {@code Q4_1},
 * nothing else; word {@code j} is the {@code j}-th group of four bytes after it, for bytes in
 * reversed order. The others are rewritten by {@link BlockRewriter}, which loses nothing: {@code
 * Q5_0} as {@code Q8_0}; {@code Q4_K} as nibbles, {@code Q5_1} and {@code Q5_K} as bytes, with a
 * scale and a minimum in single precision; {@code Q6_K} as bytes with one scale for each 16 inputs,
 * {@code scale[half][output]}. That takes 6 bits per element for {@code Q4_K} (4.5 in the file),
 * 8.5 for {@code Q5_0} (5.5), 10 for {@code Q5_1} (6), {@code Q5_K} (5.5) and {@code Q6_K} (6.6).
 *
 * @param type the format of the elements
 * @param outputs rows of the matrix in the file
 * @param inputs elements per row; a multiple of {@link #BLOCK}
 * @param offset of the first byte in the weight region; a multiple of 64
 */
public record PackedMatrix(TensorType type, int outputs, int inputs, long offset) {
    /** Inputs per block. */
    public static final int BLOCK = 32;

    /** Outputs per panel. */
    public static final int PANEL = 32;

    /** Checks the extents. */
    public PackedMatrix {
        if (outputs < 1 || inputs < 1 || inputs % BLOCK != 0 || offset < 0 || offset % 64 != 0) {
            throw new IllegalArgumentException(
                    "packed matrix: outputs=%d inputs=%d offset=%d; needs outputs >= 1, inputs a multiple of %d, offset a multiple of 64"
                            .formatted(outputs, inputs, offset, BLOCK));
        }
    }

    /** Panels, the last one perhaps padded. */
    public int panels() {
        return (outputs + PANEL - 1) / PANEL;
    }

    /** Blocks along the inputs. */
    public int blocks() {
        return inputs / BLOCK;
    }

    /** Bytes of scale and minimum, or of two scales, per output and block. */
    public int headBytes() {
        return switch (type) {
            case F32, F16, BF16 -> 0;
            case Q8_0, Q5_0, Q4_0 -> 2;
            case Q4_1 -> 4;
            case Q5_1, Q4_K, Q5_K, Q6_K -> 8;
        };
    }

    /** Whether the elements are integers to be scaled. */
    public boolean isQuantised() {
        return headBytes() > 0;
    }

    /** Whether the elements are bytes, with a sign where the type has no minimum. */
    public boolean isBytes() {
        return isQuantised() && words() == BLOCK / Integer.BYTES;
    }

    /** Four-byte words per output and block, after the head. */
    public int words() {
        return switch (type) {
            case F32 -> 32;
            case F16, BF16 -> 16;
            case Q8_0, Q5_0, Q5_1, Q5_K, Q6_K -> 8;
            case Q4_0, Q4_1, Q4_K -> 4;
        };
    }

    /** Bytes that one output's block takes. */
    public int outputBlockBytes() {
        return headBytes() + Integer.BYTES * words();
    }

    /** Bytes of one block of one panel; a multiple of 64. */
    public int blockBytes() {
        return PANEL * outputBlockBytes();
    }

    /** Bytes of the packed matrix; a multiple of 64. */
    public long lengthBytes() {
        return (long) panels() * blocks() * blockBytes();
    }

    /** The offset in the weight region of one block of one panel. */
    public long blockOffset(int panel, int block) {
        return offset + ((long) panel * blocks() + block) * blockBytes();
    }

    /** The offset in the weight region of the words of the block at {@code blockOffset}. */
    public long wordOffset(long blockOffset) {
        return blockOffset + (long) PANEL * headBytes();
    }
}
