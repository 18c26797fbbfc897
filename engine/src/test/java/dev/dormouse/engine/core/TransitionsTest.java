package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Which transitions are made, from which state, and what they answer. */
final class TransitionsTest {
    private static final long KV_BYTES = 64 * HashModel.SHAPE.blockBytesAllLayers();

    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    private static void expectOracle(EngineHarness engine, String id, int number) {
        List<Integer> prompt = prompt(number, 4 * BLOCK_TOKENS + 1);
        assertThat(engine.generate(id, prompt, 8)).as(id).isEqualTo(HashModel.oracle(prompt, 8));
    }

    @Test
    void aPauseThatKeepsReturnsAtOnceAndNothingIsLost() {
        try (EngineHarness engine = engine()) {
            RecordingListener running = engine.submit("running", prompt(1, 9), 20);
            engine.submit("p", prompt(3, 9), 1, FakeConnector.remoteDecode());
            engine.step();
            engine.step();
            TransitionReport paused = engine.made(engine.engine.pause(PauseMode.KEEP, false));
            assertThat(paused.state()).isEqualTo(new EngineState(Phase.PAUSED, 0, Set.of(), true));
            RecordingListener queued = engine.submit("queued", prompt(2, 9), 5);
            engine.settle();
            assertThat(queued.isOver()).isFalse();
            assertThat(engine.engine.statistics().heldForRemote()).isEqualTo(1);
            assertThat(engine.made(engine.engine.resume()).changed()).isTrue();
            engine.settle();

            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
            assertThat(queued.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 5));
            connector.endHold(connector.held.iterator().next());
            engine.settle();
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void aPausedEngineRefusesUnlessItKeeps() {
        try (EngineHarness engine = engine()) {
            for (PauseMode mode : List.of(PauseMode.ABORT, PauseMode.WAIT)) {
                engine.made(engine.engine.pause(mode, true));
                RecordingListener late = engine.submit("late", prompt(1, 5), 2);
                engine.settle();
                assertThat(late.failed().kind()).isEqualTo(FailureKind.PAUSED);
                assertThat(late.failed().message()).contains("paused");
                engine.made(engine.engine.resume());
            }
        }
    }

    @Test
    void clearingTheCacheForgetsPrefixes() {
        try (EngineHarness engine = engine()) {
            expectOracle(engine, "first", 1);
            engine.made(engine.engine.pause(PauseMode.WAIT, true));
            engine.made(engine.engine.resume());
            RecordingListener second = engine.submit("second", prompt(1, 17), 8);
            engine.settle();

            assertThat(second.finished().usage().cachedTokens()).isZero();
        }
    }

    @Test
    void theKvCacheAloneCanBeReleased() {
        try (EngineHarness engine = engine()) {
            assertThat(engine.refused(engine.engine.releaseKvCacheMemory()).reason())
                    .isEqualTo(Reason.CONFLICT);
            engine.made(engine.engine.pause(PauseMode.WAIT, true));
            TransitionReport released = engine.made(engine.engine.releaseKvCacheMemory());
            assertThat(released.tags()).containsExactly(WakeTag.KV_CACHE);
            assertThat(released.bytes()).isGreaterThanOrEqualTo(KV_BYTES);
            assertThat(released.state().asleep()).containsExactly(WakeTag.KV_CACHE);
            assertThat(engine.made(engine.engine.releaseKvCacheMemory()).changed()).isFalse();
            assertThat(engine.refused(engine.engine.resume()).reason()).isEqualTo(Reason.CONFLICT);
            TransitionReport woken = engine.made(engine.engine.wake(Set.of(WakeTag.KV_CACHE)));

            assertThat(woken.state().phase()).isEqualTo(Phase.AWAKE);
            assertThat(engine.made(engine.engine.resume()).changed()).isFalse();
            assertThat(engine.model().loads()).isEqualTo(1);
            expectOracle(engine, "after", 1);
        }
    }

    @Test
    void theKvCacheIsNotReleasedUnderKeptRequests() {
        try (EngineHarness engine = engine()) {
            RecordingListener kept = engine.submit("kept", prompt(1, 9), 20);
            engine.step();
            engine.made(engine.engine.pause(PauseMode.KEEP, false));
            TransitionRefusedException refused =
                    engine.refused(engine.engine.releaseKvCacheMemory());
            assertThat(refused.reason()).isEqualTo(Reason.CONFLICT);
            assertThat(refused).hasMessageContaining("1");
            engine.made(engine.engine.resume());
            engine.settle();

            assertThat(kept.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
        }
    }

    @Test
    void aRefusedReleaseOfTheKvCacheTouchesNothing() {
        try (EngineHarness engine = engine()) {
            connector.calls.clear();
            RecordingListener kept = engine.submit("kept", prompt(1, 9), 20);
            engine.step();
            EngineState awake = engine.engine.state();
            engine.refused(engine.engine.releaseKvCacheMemory());
            assertThat(engine.engine.state()).isEqualTo(awake);
            engine.made(engine.engine.pause(PauseMode.KEEP, false));
            EngineState paused = engine.engine.state();
            engine.refused(engine.engine.releaseKvCacheMemory());
            assertThat(engine.engine.state()).isEqualTo(paused);

            assertThat(connector.calls).isEmpty();
            engine.made(engine.engine.resume());
            engine.settle();
            assertThat(kept.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
        }
    }

    @Test
    void aWakeOfTheSchedulingAlonePublishesNothing() {
        try (EngineHarness engine = engine()) {
            connector.calls.clear();
            engine.made(engine.engine.sleep(0, PauseMode.ABORT));
            assertThat(engine.made(engine.engine.wake(Set.of(WakeTag.SCHEDULING))).changed())
                    .isTrue();
            assertThat(connector.calls).isEmpty();
            expectOracle(engine, "after", 1);
        }
    }

    @Test
    void levelOneCanBecomeLevelTwo() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.sleep(1, PauseMode.ABORT));
            TransitionReport deeper = engine.made(engine.engine.sleep(2, PauseMode.ABORT));
            assertThat(deeper.changed()).isTrue();
            assertThat(deeper.state().sleepLevel()).isEqualTo(2);
            assertThat(engine.made(engine.engine.sleep(1, PauseMode.ABORT)).changed()).isFalse();
            engine.made(engine.engine.wake(null));

            assertThat(engine.model().loads()).isEqualTo(2);
            expectOracle(engine, "after", 1);
        }
    }

    @Test
    void memoryThatIsBackEndsAnEarlierSleepOfLevelZeroToo() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.sleep(0, PauseMode.WAIT));
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            TransitionReport woken =
                    engine.made(engine.engine.wake(Set.of(WakeTag.WEIGHTS, WakeTag.KV_CACHE)));

            assertThat(woken.state()).isEqualTo(new EngineState(Phase.AWAKE, 0, Set.of(), false));
        }
    }

    @Test
    void wrongCallsAreRefusedAndRepeatsChangeNothing() {
        try (EngineHarness engine = engine()) {
            assertThat(engine.refused(engine.engine.sleep(3, PauseMode.ABORT)).reason())
                    .isEqualTo(Reason.INVALID);
            assertThat(engine.refused(engine.engine.sleep(-1, PauseMode.ABORT)))
                    .hasMessageContaining("-1");
            assertThat(engine.refused(engine.engine.wake(Set.of())).reason())
                    .isEqualTo(Reason.INVALID);
            assertThat(engine.made(engine.engine.wake(null)).changed()).isFalse();
            assertThat(engine.made(engine.engine.resume()).changed()).isFalse();
            engine.made(engine.engine.sleep(1, PauseMode.ABORT));
            assertThat(engine.made(engine.engine.sleep(1, PauseMode.WAIT)).changed()).isFalse();
            assertThat(engine.made(engine.engine.sleep(0, PauseMode.WAIT)).changed()).isFalse();
            assertThat(engine.made(engine.engine.pause(PauseMode.WAIT, true)).changed()).isFalse();
            assertThat(measured(engine))
                    .as("only what changed is measured")
                    .isEqualTo(Map.of("sleep", 1L, "release_kv_cache_memory", 0L, "wake", 0L));
        }
    }

    @Test
    void withoutSleepModeMemoryStays() {
        EngineConfig roomy = EngineHarness.roomy();
        EngineConfig noSleep =
                new EngineConfig(
                        "hash",
                        roomy.kvCacheBytes(),
                        roomy.blockTokens(),
                        roomy.kvType(),
                        roomy.maxModelLength(),
                        roomy.maxSequences(),
                        roomy.maxBatchedTokens(),
                        roomy.maxWaiting(),
                        true,
                        false,
                        false,
                        true,
                        false);
        try (EngineHarness engine = new EngineHarness(noSleep, connector).opened()) {
            TransitionRefusedException refused =
                    engine.refused(engine.engine.sleep(1, PauseMode.ABORT));
            assertThat(refused.reason()).isEqualTo(Reason.INVALID);
            assertThat(refused).hasMessageContaining("--enable-sleep-mode");
            assertThat(engine.refused(engine.engine.releaseKvCacheMemory()))
                    .hasMessageContaining("--enable-sleep-mode");
            assertThat(engine.made(engine.engine.sleep(0, PauseMode.ABORT)).changed()).isTrue();
            assertThat(engine.engine.state())
                    .isEqualTo(new EngineState(Phase.ASLEEP, 0, Set.of(WakeTag.SCHEDULING), true));
            assertThat(engine.made(engine.engine.wake(Set.of(WakeTag.SCHEDULING))).changed())
                    .isTrue();
            expectOracle(engine, "after", 1);
        }
    }

    @Test
    void aDrainThatDoesNotEndIsGivenUpAndTheEngineGoesOnAsBefore() {
        try (EngineHarness engine = engine()) {
            engine.submit("held", prompt(1, 9), 1, FakeConnector.remoteDecode());
            RecordingListener reading =
                    engine.submit(
                            "reading", prompt(2, 9), 5, connector.remotePrefill(prompt(2, 9)));
            RecordingListener running = engine.submit("running", prompt(3, 9), 100);
            engine.step();
            engine.step();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.WAIT);
            engine.settle();
            assertThat(sleep).isNotDone();
            engine.skippedNanos.addAndGet(Drain.LIMIT.toNanos());
            TransitionRefusedException refused = engine.refused(sleep);
            assertThat(refused.reason()).isEqualTo(Reason.UNAVAILABLE);
            assertThat(refused)
                    .hasMessageContaining("600 s")
                    .hasMessageContaining("requests [reading]")
                    .hasMessageContaining(connector.held.iterator().next());
            assertThat(engine.engine.state())
                    .isEqualTo(new EngineState(Phase.AWAKE, 0, Set.of(), false));
            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(3, 9), 100));
            expectOracle(engine, "served again", 4);

            connector.endRead(connector.reads.keySet().iterator().next(), true);
            connector.endHold(connector.held.iterator().next());
            assertThat(engine.made(engine.engine.sleep(1, PauseMode.WAIT)).changed()).isTrue();
            assertThat(reading.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 5));
        }
    }

    @Test
    void aDrainThatIsGivenUpGoesBackToThePauseBeforeIt() {
        try (EngineHarness engine = engine()) {
            engine.submit("held", prompt(1, 9), 1, FakeConnector.remoteDecode());
            engine.settle();
            engine.made(engine.engine.pause(PauseMode.KEEP, false));
            RecordingListener frozen = engine.submit("frozen", prompt(2, 9), 5);
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.KEEP);
            engine.settle();
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.PAUSING);
            engine.skippedNanos.addAndGet(Drain.LIMIT.toNanos());
            assertThat(engine.refused(sleep).reason()).isEqualTo(Reason.UNAVAILABLE);
            assertThat(engine.engine.state())
                    .isEqualTo(new EngineState(Phase.PAUSED, 0, Set.of(), true));
            engine.settle();
            assertThat(frozen.isOver()).isFalse();
            engine.made(engine.engine.resume());
            engine.settle();
            assertThat(frozen.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 5));
        }
    }

    @Test
    void aResumeCancelsADrain() {
        try (EngineHarness engine = engine()) {
            engine.submit("held", prompt(1, 9), 1, FakeConnector.remoteDecode());
            engine.settle();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.ABORT);
            engine.settle();
            assertThat(sleep).isNotDone();
            CompletableFuture<TransitionReport> resume = engine.engine.resume();
            TransitionRefusedException refused = engine.refused(sleep);
            assertThat(refused.reason()).isEqualTo(Reason.CONFLICT);
            assertThat(refused).hasMessageContaining("resume");
            TransitionReport resumed = engine.made(resume);
            assertThat(resumed.changed()).isTrue();
            assertThat(resumed.state()).isEqualTo(new EngineState(Phase.AWAKE, 0, Set.of(), false));
            assertThat(engine.made(engine.engine.resume()).changed()).isFalse();
            assertThat(engine.engine.statistics().heldForRemote()).isEqualTo(1);
            expectOracle(engine, "served again", 2);
        }
    }

    @Test
    void nothingComputesBetweenASleepOfLevelZeroAndADeeperOne() {
        try (EngineHarness engine = engine()) {
            RecordingListener kept = engine.submit("kept", prompt(1, 9), 20);
            engine.step();
            engine.step();
            engine.made(engine.engine.sleep(0, PauseMode.KEEP));
            int tokens = kept.tokens().size();
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            assertThat(kept.tokens()).hasSize(tokens);
            engine.made(engine.engine.wake(null));
            engine.settle();
            assertThat(kept.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 20));
        }
    }

    @Test
    void aRepeatedPauseClearsTheCacheOnlyIfSomethingIsInIt() {
        try (EngineHarness engine = engine()) {
            expectOracle(engine, "fills the cache", 1);
            assertThat(engine.made(engine.engine.pause(PauseMode.ABORT, false)).changed()).isTrue();
            assertThat(engine.made(engine.engine.pause(PauseMode.ABORT, true)).changed()).isTrue();
            assertThat(engine.made(engine.engine.pause(PauseMode.ABORT, true)).changed()).isFalse();
        }
    }

    /** How many transitions of each kind were measured. */
    private static Map<String, Long> measured(EngineHarness engine) {
        Map<String, Long> counts = new HashMap<>();
        engine.engine
                .statistics()
                .transitionSeconds()
                .forEach((operation, seconds) -> counts.put(operation, seconds.count()));
        return counts;
    }
}
