package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.LENGTH;
import static dev.dormouse.model.kernel.VectorShapes.halves;
import static dev.dormouse.model.kernel.VectorShapes.lowerHalves;
import static dev.dormouse.model.kernel.VectorShapes.shorts;
import static dev.dormouse.model.kernel.VectorShapes.upperHalves;

import dev.dormouse.model.KvType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/** Reads K and V of tokens from the cache into tiles; K is transposed on the way, by pairs. */
final class VectorTokens {
    private static final ValueLayout.OfLong TWO_PAIRS =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int UPPER_HALF = 0xFFFF0000;

    private VectorTokens() {}

    static void readKeys(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int[] words,
            float[] keys) {
        int pairs = headDimension / 2;
        if (tokens < TILE) {
            Arrays.fill(words, 0, pairs * TILE, 0);
        }
        transposeKeys(cache, offsets, tokens, pairs, words);
        for (int i = 0; i < pairs; i++) {
            for (int t = 0; t < TILE; t += LENGTH) {
                IntVector pair = IntVector.fromArray(INTS, words, i * TILE + t);
                int to = 2 * i * TILE + t;
                switch (type) {
                    case F16 -> {
                        lowerHalves(pair).intoArray(keys, to);
                        upperHalves(pair).intoArray(keys, to + TILE);
                    }
                    case BF16 -> {
                        pair.lanewise(VectorOperators.LSHL, 16)
                                .reinterpretAsFloats()
                                .intoArray(keys, to);
                        pair.and(UPPER_HALF).reinterpretAsFloats().intoArray(keys, to + TILE);
                    }
                }
            }
        }
    }

    /** Brings pairs of K's elements into the order {@code [pair][token]}. */
    static void transposeKeys(
            MemorySegment cache, long[] offsets, int tokens, int pairs, int[] words) {
        for (int t = 0; t < tokens; t++) {
            long from = offsets[t];
            for (int i = 0; i < pairs; i += 2) {
                long two = cache.get(TWO_PAIRS, from + 4L * i);
                words[i * TILE + t] = (int) two;
                words[(i + 1) * TILE + t] = (int) (two >>> 32);
            }
        }
    }

    static void readValues(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            float[] values) {
        if (tokens < TILE) {
            Arrays.fill(values, 0.0f);
        }
        for (int t = 0; t < tokens; t++) {
            long from = offsets[t] + (long) type.bytes() * headDimension;
            for (int d = 0; d < headDimension; d += LENGTH) {
                IntVector element = shorts(cache, from + (long) type.bytes() * d);
                FloatVector value =
                        switch (type) {
                            case F16 -> halves(element.lanewise(VectorOperators.LSHL, 13));
                            case BF16 ->
                                    element.lanewise(VectorOperators.LSHL, 16)
                                            .reinterpretAsFloats();
                        };
                value.intoArray(values, (d / TILE * TILE + t) * TILE + d % TILE);
            }
        }
    }
}
