package dev.dormouse.connector;

import java.util.Set;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/** The side channel's threads put demands in, the engine's takes them out and reports the end. */
@Param(name = "round", gen = IntGen.class, conf = "1:2")
public final class DemandInboxLinearizabilityTest {
    private static final String ENGINE = "the engine's thread";

    private final DemandInbox<Revocation> inbox = new DemandInbox<>();

    @Operation
    public boolean isDone(@Param(name = "round") int round) {
        return inbox.isDone(demand(round));
    }

    @Operation(nonParallelGroup = ENGINE)
    public String take() {
        return inbox.take().toString();
    }

    @Operation(nonParallelGroup = ENGINE)
    public void done(@Param(name = "round") int round) {
        inbox.done(Set.of(demand(round).id()));
    }

    @Test
    void eachDemandIsTakenOnceAndEndsOnlyAfterItWasReported() {
        new ModelCheckingOptions()
                .threads(3)
                .actorsPerThread(2)
                .actorsBefore(1)
                .actorsAfter(1)
                .iterations(5)
                .invocationsPerIteration(100)
                .check(getClass());
    }

    private static Revocation demand(int round) {
        return new Revocation("P", "P-1", 1, round);
    }
}
