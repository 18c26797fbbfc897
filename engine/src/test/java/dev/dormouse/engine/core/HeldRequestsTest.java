package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.FinishKind;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.WakeTag;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Requests that arrive asleep, where the operator chose that they wait. */
final class HeldRequestsTest {
    private static final List<Integer> PROMPT = prompt(1, 9);

    private static EngineHarness engine(int maxWaiting) {
        return new EngineHarness(EngineHarness.holding(EngineHarness.roomy(), maxWaiting), null)
                .opened();
    }

    @Test
    void areServedAfterTheWakeWithTheTokensOfAnAwakeEngine() {
        try (EngineHarness engine = engine(10)) {
            engine.made(engine.engine.sleep(2, PauseMode.WAIT));
            RecordingListener first = engine.submit("first", PROMPT, 5);
            engine.settle();
            assertThat(first.isOver()).isFalse();
            assertThat(engine.engine.statistics().waiting()).isEqualTo(1);
            engine.made(engine.engine.wake(Set.of(WakeTag.WEIGHTS)));
            engine.settle();
            assertThat(first.isOver()).isFalse();
            engine.made(engine.engine.wake(Set.of(WakeTag.KV_CACHE)));
            engine.settle();
            first.finished();
            assertThat(first.tokens()).isEqualTo(HashModel.oracle(PROMPT, 5));
        }
    }

    @Test
    void areToldToTheirProducerIfTheyAreAbortedWhileTheyWait() {
        FakeConnector connector = new FakeConnector(1);
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.holding(EngineHarness.roomy(), 10), connector)
                        .opened()) {
            engine.made(engine.engine.pause(PauseMode.WAIT, false));
            RecordingListener held =
                    engine.submit("held", PROMPT, 5, connector.remotePrefill(PROMPT));
            engine.settle();
            assertThat(held.isOver()).isFalse();
            engine.engine.abort("held");
            engine.settle();

            assertThat(held.finished().reason()).isEqualTo(FinishReason.ABORT);
            assertThat(connector.finishKinds.values()).containsExactly(FinishKind.FAILED);
        }
    }

    @Test
    void areNotReadFromAnEngineThatMayHaveLetTheirPromptGo() {
        FakeConnector connector = new FakeConnector(1);
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.holding(EngineHarness.roomy(), 10), connector)
                        .opened()) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            RecordingListener held =
                    engine.submit("held", PROMPT, 5, connector.remotePrefill(PROMPT));
            engine.settle();
            engine.made(engine.engine.wake(null));
            engine.settle();

            assertThat(held.tokens()).isEqualTo(HashModel.oracle(PROMPT, 5));
            assertThat(connector.reads).isEmpty();
        }
    }

    @Test
    void areRefusedAtOnceIfTheyCanNeverBeServed() {
        try (EngineHarness engine = engine(10)) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            RecordingListener wrong = engine.submit("wrong", List.of(), 5);
            engine.settle();

            assertThat(wrong.failed().kind()).isEqualTo(FailureKind.INVALID_REQUEST);
        }
    }

    @Test
    void areRefusedBeyondTheLimit() {
        try (EngineHarness engine = engine(1)) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            int limit = engine.config.maxSequences() + engine.config.maxWaiting();
            List<RecordingListener> held = new ArrayList<>();
            for (int i = 0; i < limit; i++) {
                held.add(engine.submit("held" + i, PROMPT, 5));
            }
            RecordingListener refused = engine.submit("refused", PROMPT, 5);
            engine.settle();
            assertThat(held).noneMatch(RecordingListener::isOver);
            assertThat(refused.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
        }
    }

    @Test
    void endWhenTheirClientLeavesOrTheEngineCloses() {
        RecordingListener closed;
        try (EngineHarness engine = engine(10)) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            RecordingListener aborted = engine.submit("aborted", PROMPT, 5);
            closed = engine.submit("closed", PROMPT, 5);
            engine.settle();
            engine.engine.abort("aborted");
            engine.settle();
            assertThat(aborted.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(closed.isOver()).isFalse();
        }
        assertThat(closed.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
    }
}
