package dev.dormouse.connector;

import static org.jetbrains.lincheck.datastructures.ManagedStrategyGuaranteeKt.forClasses;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/** The engine's thread writes, the side channel's threads ask. */
@Param(name = "id", gen = IntGen.class, conf = "1:2")
@Param(name = "reader", gen = IntGen.class, conf = "1:2")
@Param(name = "number", gen = IntGen.class, conf = "1:3")
public final class HoldBookLinearizabilityTest {
    private static final String ENGINE = "the engine's thread";

    private final HoldBook book = new HoldBook("P-1", () -> 0);

    @Operation(nonParallelGroup = ENGINE)
    public void begin(@Param(name = "number") int epoch) {
        book.begin(epoch);
    }

    @Operation(nonParallelGroup = ENGINE)
    public void hold(@Param(name = "id") int id, @Param(name = "number") int untilNanos) {
        book.hold(String.valueOf(id), untilNanos);
    }

    @Operation(nonParallelGroup = ENGINE)
    public void renew(@Param(name = "id") int id, @Param(name = "number") int untilNanos) {
        book.renew(String.valueOf(id), untilNanos);
    }

    @Operation(nonParallelGroup = ENGINE)
    public void end(@Param(name = "id") int id) {
        book.end(String.valueOf(id));
    }

    @Operation(nonParallelGroup = ENGINE)
    public boolean endUnclaimed(@Param(name = "id") int id) {
        return book.endUnclaimed(String.valueOf(id));
    }

    @Operation
    public String answer(@Param(name = "id") int id, @Param(name = "reader") int reader) {
        HoldQuestion claim = new HoldQuestion(String.valueOf(id), String.valueOf(reader));
        return HoldAnswer.decode(book.answer(claim), claim, 0).toString();
    }

    @Test
    void anAnswerIsTrueOfOneMoment() {
        new ModelCheckingOptions()
                .threads(2)
                .actorsPerThread(3)
                .actorsBefore(2)
                .actorsAfter(0)
                .iterations(5)
                .invocationsPerIteration(100)
                .addGuarantee(
                        forClasses(
                                        HoldAnswer.class.getName(),
                                        WireReader.class.getName(),
                                        WireWriter.class.getName())
                                .allMethods()
                                .ignore())
                .check(getClass());
    }
}
