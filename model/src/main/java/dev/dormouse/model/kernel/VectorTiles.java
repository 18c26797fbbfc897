package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;
import static dev.dormouse.model.kernel.VectorShapes.FLOATS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.halves;
import static dev.dormouse.model.kernel.VectorShapes.ints;
import static dev.dormouse.model.kernel.VectorShapes.lowerHalves;
import static dev.dormouse.model.kernel.VectorShapes.shorts;
import static dev.dormouse.model.kernel.VectorShapes.toFloats;
import static dev.dormouse.model.kernel.VectorShapes.upperHalves;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/** Turns packed weights into tiles of floats, and their heads into scales and minima. */
final class VectorTiles {
    private static final int UPPER_HALF = 0xFFFF0000;
    private static final int ROW = PANEL;

    private VectorTiles() {}

    static void heads(PackedMatrix matrix, MemorySegment weights, long block, float[] heads) {
        for (int n = 0; n < PANEL; n += LENGTH) {
            FloatVector scale = FloatVector.broadcast(FLOATS, 1.0f);
            FloatVector minimum = FloatVector.zero(FLOATS);
            switch (matrix.type()) {
                case F32, F16, BF16 -> {}
                case Q8_0 -> scale = scales(weights, block + 2L * n);
                case Q4_0 -> {
                    scale = scales(weights, block + 2L * n);
                    minimum = scale.mul(-8.0f);
                }
                case Q4_1 -> {
                    IntVector pairs = ints(weights, block + 4L * n);
                    scale = lowerHalves(pairs);
                    minimum = upperHalves(pairs);
                }
            }
            scale.intoArray(heads, n);
            minimum.intoArray(heads, PANEL + n);
        }
    }

    private static FloatVector scales(MemorySegment weights, long offset) {
        return halves(shorts(weights, offset).lanewise(VectorOperators.LSHL, 13));
    }

    static void expand(PackedMatrix matrix, MemorySegment weights, long words, float[] tile) {
        for (int j = 0; j < matrix.words(); j++) {
            for (int n = 0; n < PANEL; n += LENGTH) {
                IntVector word = ints(weights, words + 4L * (PANEL * j + n));
                switch (matrix.type()) {
                    case F32 -> word.reinterpretAsFloats().intoArray(tile, j * ROW + n);
                    case F16 -> {
                        lowerHalves(word).intoArray(tile, 2 * j * ROW + n);
                        upperHalves(word).intoArray(tile, (2 * j + 1) * ROW + n);
                    }
                    case BF16 -> {
                        word.lanewise(VectorOperators.LSHL, 16)
                                .reinterpretAsFloats()
                                .intoArray(tile, 2 * j * ROW + n);
                        word.and(UPPER_HALF)
                                .reinterpretAsFloats()
                                .intoArray(tile, (2 * j + 1) * ROW + n);
                    }
                    case Q8_0 -> expandBytes(word, tile, 4 * j * ROW + n);
                    case Q4_0, Q4_1 -> expandNibbles(word, tile, 4 * j * ROW + n);
                }
            }
        }
    }

    private static void expandBytes(IntVector word, float[] tile, int to) {
        for (int i = 0; i < 4; i++) {
            toFloats(word.lanewise(VectorOperators.LSHL, 24 - 8 * i).lanewise(VectorOperators.ASHR, 24))
                    .intoArray(tile, to + i * ROW);
        }
    }

    /** The low nibbles of a block's 16 bytes are inputs 0 to 15, the high ones 16 to 31. */
    private static void expandNibbles(IntVector word, float[] tile, int to) {
        for (int i = 0; i < 4; i++) {
            toFloats(word.and(15)).intoArray(tile, to + i * ROW);
            toFloats(word.lanewise(VectorOperators.LSHR, 4).and(15))
                    .intoArray(tile, to + (16 + i) * ROW);
            word = word.lanewise(VectorOperators.LSHR, 8);
        }
    }
}
