package dev.dormouse.engine.core;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/** Clients put messages in, the engine's thread takes them out and closes the inbox. */
@Param(name = "id", gen = IntGen.class, conf = "1:9")
public final class InboxLinearizabilityTest {
    private static final String ENGINE = "the engine's thread";

    private final Inbox inbox = new Inbox(2);

    @Operation
    public boolean offer(@Param(name = "id") int id) {
        return inbox.offer(new Command.Abort(String.valueOf(id)));
    }

    @Operation(nonParallelGroup = ENGINE)
    public String takeAll() {
        return inbox.takeAll().toString();
    }

    @Operation(nonParallelGroup = ENGINE)
    public String close() {
        return inbox.close().toString();
    }

    @Test
    void eachMessageThatWasTakenInIsHandedOutOnceAndInOrder() {
        new ModelCheckingOptions()
                .threads(3)
                .actorsPerThread(2)
                .actorsBefore(1)
                .actorsAfter(1)
                .iterations(5)
                .invocationsPerIteration(100)
                .check(getClass());
    }
}
