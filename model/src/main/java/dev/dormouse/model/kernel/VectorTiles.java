package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorPackedProduct.TOP_BYTE;
import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static dev.dormouse.model.kernel.VectorShapes.floats;
import static dev.dormouse.model.kernel.VectorShapes.halves;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.lowerHalves;
import static dev.dormouse.model.kernel.VectorShapes.shorts;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;
import static dev.dormouse.model.kernel.VectorShapes.upperHalves;
import static jdk.incubator.vector.VectorOperators.ASHR;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/** Turns packed weights into tiles of floats, and their heads into scales and minima. */
final class VectorTiles {
    private static final IntVector NIBBLE = IntVector.broadcast(INTS, 15);
    private static final IntVector UPPER_HALF = IntVector.broadcast(INTS, 0xFFFF0000);
    private static final FloatVector BYTE = all(0x1p-24f);

    private VectorTiles() {}

    static void heads(PackedMatrix matrix, MemorySegment weights, long block, float[] heads) {
        switch (matrix.type()) {
            case F32, F16, BF16, Q6_K -> {
                Arrays.fill(heads, 0, PANEL, 1.0f);
                Arrays.fill(heads, PANEL, 2 * PANEL, 0.0f);
            }
            case Q8_0, Q5_0 -> scales(weights, block, 0.0f, heads);
            case Q4_0 -> scales(weights, block, -8.0f, heads);
            case Q4_1 -> {
                for (int n = 0; n < PANEL; n += LENGTH) {
                    IntVector pairs = ints(weights, block + 4L * n);
                    lowerHalves(pairs).intoArray(heads, n);
                    upperHalves(pairs).intoArray(heads, PANEL + n);
                }
            }
            case Q5_1, Q4_K, Q5_K -> {
                for (int n = 0; n < 2 * PANEL; n += LENGTH) {
                    floats(weights, block + 4L * n).intoArray(heads, n);
                }
            }
        }
    }

    /** Minima are multiples of the scales. */
    private static void scales(
            MemorySegment weights, long block, float minimumPerScale, float[] heads) {
        FloatVector factor = all(minimumPerScale);
        for (int n = 0; n < PANEL; n += LENGTH) {
            FloatVector scale = halves(shorts(weights, block + 2L * n).lanewise(LSHL, 13));
            scale.intoArray(heads, n);
            scale.mul(factor).intoArray(heads, PANEL + n);
        }
    }

    /** One method, so that it is too large to be inlined: see {@link VectorShapes}. */
    static void expand(PackedMatrix matrix, MemorySegment weights, long words, float[] tile) {
        for (int j = 0; j < matrix.words(); j++) {
            for (int n = 0; n < PANEL; n += LENGTH) {
                IntVector word = ints(weights, words + 4L * (PANEL * j + n));
                switch (matrix.type()) {
                    case F32 -> word.reinterpretAsFloats().intoArray(tile, PANEL * j + n);
                    case F16 -> {
                        int to = 2 * PANEL * j + n;
                        lowerHalves(word).intoArray(tile, to);
                        upperHalves(word).intoArray(tile, to + PANEL);
                    }
                    case BF16 -> {
                        int to = 2 * PANEL * j + n;
                        word.lanewise(LSHL, 16).reinterpretAsFloats().intoArray(tile, to);
                        word.and(UPPER_HALF).reinterpretAsFloats().intoArray(tile, to + PANEL);
                    }
                    case Q8_0, Q5_0, Q5_1, Q5_K -> {
                        // Multiplying is cheaper than a second shift, and as exact.
                        int to = 4 * PANEL * j + n;
                        toFloats(word.and(TOP_BYTE)).mul(BYTE).intoArray(tile, to);
                        for (int k = 1; k < 4; k++) {
                            word = word.lanewise(LSHL, 8);
                            toFloats(word.and(TOP_BYTE)).mul(BYTE).intoArray(tile, to + k * PANEL);
                        }
                    }
                    case Q4_0, Q4_1, Q4_K -> {
                        // The low nibbles of 16 bytes are inputs 0 to 15, the high ones 16 to 31.
                        int to = 4 * PANEL * j + n;
                        for (int k = 0; k < 4; k++) {
                            toFloats(word.and(NIBBLE)).intoArray(tile, to + k * PANEL);
                            word = word.lanewise(LSHR, 4);
                            toFloats(word.and(NIBBLE)).intoArray(tile, to + (16 + k) * PANEL);
                            word = word.lanewise(LSHR, 4);
                        }
                    }
                    case Q6_K -> throw new IllegalArgumentException("expand: scaled: " + matrix);
                }
            }
        }
    }

    /** For bytes whose scales, one for each half of a block, are part of the quants. */
    static void expandScaled(MemorySegment weights, long block, float[] tile) {
        long words = block + 8L * PANEL;
        for (int n = 0; n < PANEL; n += 2 * LENGTH) {
            for (int half = 0; half < 2; half++) {
                FloatVector p = floats(weights, block + 4L * (half * PANEL + n));
                FloatVector q = floats(weights, block + 4L * (half * PANEL + n + LENGTH));
                for (int j = 4 * half; j < 4 * half + 4; j++) {
                    IntVector v = ints(weights, words + 4L * (PANEL * j + n));
                    IntVector w = ints(weights, words + 4L * (PANEL * j + n + LENGTH));
                    int to = 4 * j * PANEL + n;
                    for (int k = 0; k < 2; k++) {
                        toFloats(v.lanewise(ASHR, 24)).mul(p).intoArray(tile, to);
                        toFloats(w.lanewise(ASHR, 24)).mul(q).intoArray(tile, to + LENGTH);
                        v = v.lanewise(LSHL, 8);
                        w = w.lanewise(LSHL, 8);
                        to += PANEL;
                        toFloats(v.lanewise(ASHR, 24)).mul(p).intoArray(tile, to);
                        toFloats(w.lanewise(ASHR, 24)).mul(q).intoArray(tile, to + LENGTH);
                        v = v.lanewise(LSHL, 8);
                        w = w.lanewise(LSHL, 8);
                        to += PANEL;
                    }
                }
            }
        }
    }
}
