package dev.dormouse.model.gguf;

import java.util.Arrays;
import java.util.Optional;

/**
 * The tensor element formats that this module can read.
 *
 * <p>Numbers and block layouts are those of ggml's {@code enum ggml_type} and {@code
 * ggml-common.h}. All multi-byte fields are little-endian.
 */
public enum TensorType {
    /** IEEE single precision. */
    F32(0, 1, 4),
    /** IEEE half precision. */
    F16(1, 1, 2),
    /** 32 values: half-precision scale, then 16 bytes of nibbles; value = scale × (nibble − 8). */
    Q4_0(2, 32, 18),
    /** 32 values: half-precision scale and minimum, 16 bytes of nibbles; scale × nibble + min. */
    Q4_1(3, 32, 20),
    /** 32 values: half-precision scale, 32 fifth bits, 16 bytes of nibbles; scale × (q − 16). */
    Q5_0(6, 32, 22),
    /** 32 values: half-precision scale and minimum, 32 fifth bits, 16 bytes; scale × q + min. */
    Q5_1(7, 32, 24),
    /** 32 values: half-precision scale, then 32 signed bytes; value = scale × byte. */
    Q8_0(8, 32, 34),
    /** 256 values in eight groups: six-bit scales and minima, nibbles; scale × nibble − min. */
    Q4_K(12, 256, 144),
    /** As {@link #Q4_K}, with a fifth bit for each value. */
    Q5_K(13, 256, 176),
    /** 256 values in 16 groups: low nibbles, two high bits, eight-bit scales; scale × (q − 32). */
    Q6_K(14, 256, 210),
    /** The upper half of an IEEE single. */
    BF16(30, 1, 2);

    private final int id;
    private final int blockElements;
    private final int blockBytes;

    TensorType(int id, int blockElements, int blockBytes) {
        this.id = id;
        this.blockElements = blockElements;
        this.blockBytes = blockBytes;
    }

    /** The number that stands for this type in a file. */
    public int id() {
        return id;
    }

    /** How many elements one block holds; 1 for the plain types. */
    public int blockElements() {
        return blockElements;
    }

    /** How many bytes one block takes. */
    public int blockBytes() {
        return blockBytes;
    }

    /**
     * The bytes that {@code elements} elements take.
     *
     * @throws IllegalArgumentException when {@code elements} is negative or no multiple of the
     *     block
     * @throws ArithmeticException when the size exceeds a {@code long}
     */
    public long bytesFor(long elements) {
        if (elements < 0 || elements % blockElements != 0) {
            throw new IllegalArgumentException(
                    "size of "
                            + elements
                            + " elements of "
                            + this
                            + ": not a multiple of its block of "
                            + blockElements);
        }
        return Math.multiplyExact(elements / blockElements, (long) blockBytes);
    }

    static Optional<TensorType> ofId(long id) {
        return Arrays.stream(values()).filter(type -> type.id == id).findFirst();
    }

    /** Names a type number for a message, also those that this module cannot read. */
    static String describe(long id) {
        String name =
                switch ((int) Math.min(id, Integer.MAX_VALUE)) {
                    case 9 -> "Q8_1";
                    case 10 -> "Q2_K";
                    case 11 -> "Q3_K";
                    case 15 -> "Q8_K";
                    case 16 -> "IQ2_XXS";
                    case 17 -> "IQ2_XS";
                    case 18 -> "IQ3_XXS";
                    case 19 -> "IQ1_S";
                    case 20 -> "IQ4_NL";
                    case 21 -> "IQ3_S";
                    case 22 -> "IQ2_S";
                    case 23 -> "IQ4_XS";
                    case 24 -> "I8";
                    case 25 -> "I16";
                    case 26 -> "I32";
                    case 27 -> "I64";
                    case 28 -> "F64";
                    case 29 -> "IQ1_M";
                    default -> "unknown";
                };
        return name + " (" + id + ")";
    }
}
