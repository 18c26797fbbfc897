package dev.dormouse.model.kernel;

import dev.dormouse.model.gguf.TensorType;

/**
 * Where a weight matrix lies in the weight region, and in which order.
 *
 * <p>Outputs are cut into panels of 32, the last one padded with zeros, and inputs into blocks of
 * 32. A panel's blocks lie one behind the other. A block holds the heads of its 32 outputs (a half
 * precision scale for {@code Q8_0} and {@code Q4_0}, a scale and a minimum for {@code Q4_1},
 * nothing else), then its words: {@code word[j][output]}, where word {@code j} is the {@code j}-th
 * group of four bytes that the output's block has in a GGUF file after its head, for {@code Q8_0}
 * in reversed order. So a vector of neighbouring words belongs to neighbouring outputs, and packing
 * moves whole words.
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

    /** Bytes of scale and minimum per output and block. */
    public int headBytes() {
        return switch (type) {
            case F32, F16, BF16 -> 0;
            case Q8_0, Q4_0 -> 2;
            case Q4_1 -> 4;
        };
    }

    /** Whether the elements are integers to be scaled. */
    public boolean isQuantised() {
        return headBytes() > 0;
    }

    /** Four-byte words per output and block, after the head. */
    public int words() {
        return switch (type) {
            case F32 -> 32;
            case F16, BF16 -> 16;
            case Q8_0 -> 8;
            case Q4_0, Q4_1 -> 4;
        };
    }

    /** Bytes that one output's block takes, here as in a GGUF file. */
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
