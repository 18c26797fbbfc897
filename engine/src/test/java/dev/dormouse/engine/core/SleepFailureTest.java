package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import dev.dormouse.engine.WakeTag;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Sleep and wake as transactions over ranks: all of them, none of them, or a truthful failure. */
final class SleepFailureTest {
    private final FakeConnector connector = new FakeConnector(2);

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    private static void expectOracle(EngineHarness engine, String id) {
        assertThat(engine.generate(id, prompt(1, 17), 8))
                .as(id)
                .isEqualTo(HashModel.oracle(prompt(1, 17), 8));
    }

    @Test
    void ifOneRankCannotReleaseEveryRankGoesOnServing() {
        try (EngineHarness engine = engine()) {
            expectOracle(engine, "before");
            connector.ranks.get(1).failRelease = true;
            connector.calls.clear();
            RecordingListener running = engine.submit("running", prompt(2, 9), 20);
            engine.step();
            engine.step();
            TransitionRefusedException refused =
                    engine.refused(engine.engine.sleep(1, PauseMode.KEEP));

            assertThat(refused.reason()).isEqualTo(Reason.UNAVAILABLE);
            assertThat(refused).hasMessageContaining("made to time out");
            assertThat(connector.calls)
                    .containsExactly(
                            "withdraw",
                            "prepare 0",
                            "prepare 1",
                            "release 0",
                            "release 1 fails",
                            "restore 0",
                            "restore 1",
                            "publish 2");
            assertThat(connector.ranks).noneMatch(FakeConnector.Rank::isReleased);
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.AWAKE);
            engine.settle();
            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 20));
            expectOracle(engine, "after the failure");

            connector.ranks.get(1).failRelease = false;
            engine.made(engine.engine.sleep(1, PauseMode.KEEP));
            engine.made(engine.engine.wake(null));
            expectOracle(engine, "after the second try");
        }
    }

    @Test
    void ifOneRankIsNotReadyNoRankLetsGo() {
        try (EngineHarness engine = engine()) {
            connector.ranks.get(1).failPrepare = true;
            connector.calls.clear();
            engine.refused(engine.engine.sleep(1, PauseMode.ABORT));

            assertThat(connector.calls)
                    .containsExactly(
                            "withdraw",
                            "prepare 0",
                            "prepare 1 fails",
                            "restore 0",
                            "restore 1",
                            "publish 2");
            expectOracle(engine, "after the failure");
        }
    }

    @Test
    void aPausedEngineThatCannotFallAsleepStaysPaused() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.pause(PauseMode.WAIT, true));
            connector.ranks.get(0).failRelease = true;
            engine.refused(engine.engine.releaseKvCacheMemory());

            assertThat(engine.engine.state().phase()).isEqualTo(Phase.PAUSED);
            engine.made(engine.engine.resume());
            expectOracle(engine, "after");
        }
    }

    @Test
    void anEngineThatCannotUndoSaysSo() {
        try (EngineHarness engine = engine()) {
            RecordingListener kept = engine.submit("kept", prompt(2, 9), 20);
            engine.step();
            connector.ranks.get(1).failRelease = true;
            connector.ranks.get(0).failRestore = true;
            TransitionRefusedException refused =
                    engine.refused(engine.engine.sleep(1, PauseMode.KEEP));

            assertThat(refused).hasMessageContaining("could not be undone");
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.FAILED);
            assertThat(kept.failed().kind()).isEqualTo(FailureKind.INTERNAL);
            RecordingListener late = engine.submit("late", prompt(2, 9), 2);
            engine.settle();
            assertThat(late.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
            assertThat(late.failed().message()).contains("failed");
            assertThat(engine.refused(engine.engine.wake(null)).reason())
                    .isEqualTo(Reason.CONFLICT);
        }
    }

    @Test
    void aWakeThatCannotReadTheWeightsLeavesEverythingAsleep() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.sleep(2, PauseMode.ABORT));
            engine.model().failNextLoad(1);
            TransitionRefusedException refused = engine.refused(engine.engine.wake(null));

            assertThat(refused.reason()).isEqualTo(Reason.UNAVAILABLE);
            assertThat(refused).hasMessageContaining("checksum");
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.ASLEEP);
            assertThat(engine.engine.state().asleep())
                    .containsExactlyInAnyOrder(WakeTag.WEIGHTS, WakeTag.KV_CACHE);
            assertThat(engine.engine.state().sleepLevel()).isEqualTo(2);
            assertThat(engine.engine.statistics().registrationEpoch()).isEqualTo(1);
            engine.made(engine.engine.wake(null));
            expectOracle(engine, "after the second try");
        }
    }

    @Test
    void aWakeThatCannotRegisterOrPublishLeavesEverythingAsleep() {
        try (EngineHarness engine = engine()) {
            for (String step : List.of("rank 0", "rank 1", "publish")) {
                engine.made(engine.engine.sleep(1, PauseMode.ABORT));
                long epoch = connector.scheduling.epoch();
                connector.ranks.get(0).failRestore = step.equals("rank 0");
                connector.ranks.get(1).failRestore = step.equals("rank 1");
                connector.failPublish = step.equals("publish");
                assertThat(engine.refused(engine.engine.wake(null)).reason())
                        .as(step)
                        .isEqualTo(Reason.UNAVAILABLE);
                assertThat(engine.engine.state().phase()).isEqualTo(Phase.ASLEEP);
                assertThat(connector.scheduling.epoch()).isEqualTo(epoch);
                assertThat(connector.ranks).allMatch(FakeConnector.Rank::isReleased);
                RecordingListener early = engine.submit("early", prompt(1, 5), 2);
                engine.settle();
                assertThat(early.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);

                connector.ranks.forEach(rank -> rank.failRestore = false);
                connector.failPublish = false;
                engine.made(engine.engine.wake(null));
                assertThat(connector.scheduling.epoch()).isEqualTo(epoch + 1);
                expectOracle(engine, "after " + step);
            }
        }
    }

    @Test
    void whatWasAwakeBeforeAFailedWakeStaysAwake() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.sleep(2, PauseMode.ABORT));
            engine.made(engine.engine.wake(Set.of(WakeTag.WEIGHTS)));
            connector.failPublish = true;
            engine.refused(engine.engine.wake(null));
            assertThat(engine.engine.state().asleep()).containsExactly(WakeTag.KV_CACHE);
            connector.failPublish = false;
            engine.made(engine.engine.wake(null));

            assertThat(engine.model().loads()).isEqualTo(2);
            expectOracle(engine, "after");
        }
    }
}
