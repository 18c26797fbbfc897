package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionReport;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** How an engine prepares its end. */
final class WindDownTest {
    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    @Test
    void requestsEndWholeAndNewOnesAreRefused() {
        try (EngineHarness engine = engine()) {
            RecordingListener running = engine.submit("running", prompt(1, 9), 20);
            engine.step();
            engine.step();
            CompletableFuture<TransitionReport> end = engine.engine.windDown();
            engine.step();
            RecordingListener late = engine.submit("late", prompt(2, 9), 5);
            assertThat(engine.made(end).state().phase()).isEqualTo(Phase.PAUSED);
            engine.settle();

            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
            assertThat(late.failed().kind()).isEqualTo(FailureKind.PAUSED);
        }
    }

    @Test
    void whatAPauseFrozeIsServedToItsEnd() {
        try (EngineHarness engine = engine()) {
            RecordingListener frozen = engine.submit("frozen", prompt(1, 9), 20);
            engine.step();
            engine.step();
            engine.made(engine.engine.pause(PauseMode.KEEP, false));
            engine.settle();
            assertThat(frozen.isOver()).isFalse();

            engine.made(engine.engine.windDown());
            assertThat(frozen.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
        }
    }

    @Test
    void aHeldPromptIsWaitedFor() {
        try (EngineHarness engine = engine()) {
            engine.submit("held", prompt(3, 9), 1, FakeConnector.remoteDecode());
            engine.settle();
            CompletableFuture<TransitionReport> end = engine.engine.windDown();
            engine.settle();
            assertThat(end).isNotDone();

            connector.endHold(connector.held.iterator().next());
            engine.made(end);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void asleepNothingIsWaitedForAndTheEngineSleepsOn() {
        try (EngineHarness engine = engine()) {
            RecordingListener frozen = engine.submit("frozen", prompt(1, 9), 20);
            engine.step();
            engine.step();
            engine.made(engine.engine.sleep(1, PauseMode.KEEP));
            assertThat(engine.made(engine.engine.windDown()).state().phase())
                    .isEqualTo(Phase.ASLEEP);
            assertThat(frozen.isOver()).isFalse();
        }
    }
}
