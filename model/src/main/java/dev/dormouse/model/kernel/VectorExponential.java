package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.VectorShapes.INTS;
import static dev.dormouse.model.kernel.VectorShapes.all;
import static jdk.incubator.vector.VectorOperators.GT;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LT;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/** {@link Exponential} for every lane. Constants are vectors, which saves the compiler nodes. */
final class VectorExponential {
    private static final FloatVector LOWEST = all(Exponential.LOWEST);
    private static final FloatVector HIGHEST = all(Exponential.HIGHEST);
    private static final FloatVector LOG2_E = all(Exponential.LOG2_E);
    private static final FloatVector LN2_HIGH = all(-Exponential.LN2_HIGH);
    private static final FloatVector LN2_LOW = all(-Exponential.LN2_LOW);
    private static final FloatVector ROUND = all(Exponential.ROUND);
    private static final FloatVector ONE = all(1.0f);
    private static final FloatVector P0 = all(Exponential.P0);
    private static final FloatVector P1 = all(Exponential.P1);
    private static final FloatVector P2 = all(Exponential.P2);
    private static final FloatVector P3 = all(Exponential.P3);
    private static final FloatVector P4 = all(Exponential.P4);
    private static final FloatVector P5 = all(Exponential.P5);
    private static final IntVector BIAS = IntVector.broadcast(INTS, Exponential.EXPONENT_BIAS);

    private VectorExponential() {}

    static FloatVector exp(FloatVector value) {
        // FloatVector.max and min would treat NaN and -0 as Math does, in many instructions.
        FloatVector x = value.blend(LOWEST, value.compare(LT, LOWEST));
        x = x.blend(HIGHEST, x.compare(GT, HIGHEST));
        FloatVector shifted = x.fma(LOG2_E, ROUND);
        FloatVector n = shifted.sub(ROUND);
        FloatVector r = n.fma(LN2_LOW, n.fma(LN2_HIGH, x));
        FloatVector p = P0.fma(r, P1).fma(r, P2).fma(r, P3).fma(r, P4).fma(r, P5);
        p = p.fma(r.mul(r), r).add(ONE);
        IntVector scale =
                shifted.reinterpretAsInts().add(BIAS).lanewise(LSHL, Exponential.MANTISSA_BITS);
        return p.mul(scale.reinterpretAsFloats());
    }
}
