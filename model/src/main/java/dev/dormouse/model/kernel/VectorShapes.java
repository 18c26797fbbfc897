package dev.dormouse.model.kernel;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * The vector width of this process, and loads that need it.
 *
 * <p>Constants, since the compiler only makes vector instructions for shapes that it knows. The
 * system property {@code dormouse.vector.bits} (128, 256 or 512) overrides the machine's choice.
 *
 * <p>HotSpot's C2 (JDK 25) spends 200 to 650 nodes on each vector operation and stops inlining in a
 * compilation after 18,000; what it then leaves as calls passes vectors as objects, several times
 * slower. So a method that is compiled on its own has at most about 35 operations, its callees
 * included, and each large kernel is longer than the 325 bytecodes that C2 inlines into hot callers
 * (FreqInlineSize). A test watches the lengths.
 */
final class VectorShapes {
    private static final VectorShape SHAPE =
            VectorShape.forBitSize(
                    Integer.getInteger(
                            "dormouse.vector.bits", FloatVector.SPECIES_PREFERRED.vectorBitSize()));

    static final VectorSpecies<Float> FLOATS = VectorSpecies.of(float.class, SHAPE);
    static final VectorSpecies<Integer> INTS = VectorSpecies.of(int.class, SHAPE);

    /** As many shorts as there are ints. */
    static final VectorSpecies<Short> SHORTS =
            VectorSpecies.of(short.class, VectorShape.forBitSize(SHAPE.vectorBitSize() / 2));

    /** Lanes of a vector of floats or ints: 4, 8 or 16. */
    static final int LENGTH = FLOATS.length();

    private static final IntVector HALF_BITS = IntVector.broadcast(INTS, 0x8FFFE000);
    private static final FloatVector HALF_EXPONENT = FloatVector.broadcast(FLOATS, 0x1p112f);

    private VectorShapes() {}

    static IntVector ints(MemorySegment segment, long offset) {
        return IntVector.fromMemorySegment(INTS, segment, offset, ByteOrder.LITTLE_ENDIAN);
    }

    static FloatVector floats(MemorySegment segment, long offset) {
        return ints(segment, offset).reinterpretAsFloats();
    }

    static FloatVector floats(float[] values, int offset) {
        return FloatVector.fromArray(FLOATS, values, offset);
    }

    /** Sixteen-bit elements as ints, with their sign. */
    static IntVector shorts(MemorySegment segment, long offset) {
        ShortVector halves =
                ShortVector.fromMemorySegment(SHORTS, segment, offset, ByteOrder.LITTLE_ENDIAN);
        return (IntVector) halves.convertShape(VectorOperators.S2I, INTS, 0);
    }

    /**
     * Widens half precision numbers: {@code shifted} holds each one with its sign extended, shifted
     * left by 13. The exponent's bias then differs by 112 from single precision, which one
     * multiplication corrects, for subnormal numbers too. Infinities become finite.
     */
    static FloatVector halves(IntVector shifted) {
        return shifted.and(HALF_BITS).reinterpretAsFloats().mul(HALF_EXPONENT);
    }

    /** The half precision number in the lower half of each lane. */
    static FloatVector lowerHalves(IntVector pairs) {
        return halves(pairs.lanewise(VectorOperators.LSHL, 16).lanewise(VectorOperators.ASHR, 3));
    }

    /** The half precision number in the upper half of each lane. */
    static FloatVector upperHalves(IntVector pairs) {
        return halves(pairs.lanewise(VectorOperators.ASHR, 3));
    }

    static FloatVector toFloats(IntVector integers) {
        return (FloatVector) integers.convert(VectorOperators.I2F, 0);
    }

    static FloatVector all(float value) {
        return FloatVector.broadcast(FLOATS, value);
    }
}
