package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sleep and wake: what goes, in which order, and that no token changes. */
final class SleepTest {
    private static final long KV_BYTES = 64 * HashModel.SHAPE.blockBytesAllLayers();

    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    private static void expectOracle(EngineHarness engine, String id, int number) {
        List<Integer> prompt = prompt(number, 4 * BLOCK_TOKENS + 1);
        assertThat(engine.generate(id, prompt, 8)).as(id).isEqualTo(HashModel.oracle(prompt, 8));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void wokenEnginesGiveTheSameTokens(int level) {
        try (EngineHarness engine = engine()) {
            expectOracle(engine, "before", 1);
            for (int cycle = 0; cycle < 3; cycle++) {
                TransitionReport slept = engine.made(engine.engine.sleep(level, PauseMode.ABORT));
                assertThat(slept.changed()).isTrue();
                assertThat(slept.level()).isEqualTo(level);
                assertThat(slept.state().phase()).isEqualTo(Phase.ASLEEP);
                assertThat(slept.state().sleepLevel()).isEqualTo(level);
                assertThat(slept.bytes()).isGreaterThanOrEqualTo(KV_BYTES);
                TransitionReport woken = engine.made(engine.engine.wake(null));

                assertThat(woken.state())
                        .isEqualTo(new EngineState(Phase.AWAKE, 0, Set.of(), false));
                assertThat(woken.bytes()).isEqualTo(slept.bytes());
                expectOracle(engine, "after" + cycle, 1);
            }
            assertThat(engine.model().loads()).isEqualTo(level == 2 ? 4 : 1);
            assertThat(engine.heapTrims).hasValue(3);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void tagsWakeInAnyOrderAndNothingIsComputedBefore(int level) {
        try (EngineHarness engine = engine()) {
            for (List<WakeTag> order :
                    List.of(
                            List.of(WakeTag.WEIGHTS, WakeTag.KV_CACHE),
                            List.of(WakeTag.KV_CACHE, WakeTag.WEIGHTS))) {
                engine.made(engine.engine.sleep(level, PauseMode.ABORT));
                TransitionReport half = engine.made(engine.engine.wake(Set.of(order.getFirst())));
                assertThat(half.state().phase()).isEqualTo(Phase.ASLEEP);
                assertThat(half.state().isSleeping()).isTrue();
                assertThat(half.state().asleep()).containsExactly(order.getLast());
                RecordingListener early = engine.submit("early", prompt(1, 5), 2);
                engine.settle();
                assertThat(early.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
                // What is awake already stays as it is.
                TransitionReport rest = engine.made(engine.engine.wake(Set.copyOf(order)));
                assertThat(rest.tags()).containsExactly(order.getLast());

                assertThat(rest.state().phase()).isEqualTo(Phase.AWAKE);
                expectOracle(engine, "after " + order, 2);
            }
        }
    }

    @Test
    void theOrderIsWithdrawReleaseAndRestorePublish() {
        try (EngineHarness engine = engine()) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            engine.made(engine.engine.wake(null));

            assertThat(connector.calls)
                    .containsExactly(
                            "register 0",
                            "publish 1",
                            "withdraw",
                            "release 0",
                            "restore 0",
                            "publish 1");
        }
    }

    @Test
    void onlyAWakeThatRestoresTheKvCachePublishes() {
        try (EngineHarness engine = engine()) {
            assertThat(engine.engine.statistics().registrationEpoch()).isEqualTo(1);
            engine.made(engine.engine.sleep(2, PauseMode.ABORT));
            engine.made(engine.engine.wake(Set.of(WakeTag.WEIGHTS)));
            engine.settle();
            assertThat(engine.engine.statistics().registrationEpoch()).isEqualTo(1);
            engine.made(engine.engine.wake(Set.of(WakeTag.KV_CACHE)));
            engine.settle();
            assertThat(engine.engine.statistics().registrationEpoch()).isEqualTo(2);
            engine.made(engine.engine.wake(null));
            engine.settle();
            assertThat(engine.engine.statistics().registrationEpoch()).isEqualTo(2);
        }
    }

    @Test
    void thePrefixCacheDiesWithTheKvCache() {
        try (EngineHarness engine = engine()) {
            List<Integer> prompt = prompt(1, 4 * BLOCK_TOKENS + 1);
            expectOracle(engine, "cold", 1);
            engine.made(engine.engine.sleep(1, PauseMode.ABORT));
            engine.made(engine.engine.wake(null));
            RecordingListener first = engine.submit("first", prompt, 8);
            engine.settle();
            RecordingListener second = engine.submit("second", prompt, 8);
            engine.settle();

            assertThat(first.finished().usage().cachedTokens()).isZero();
            assertThat(second.finished().usage().cachedTokens()).isEqualTo(4 * BLOCK_TOKENS);
            assertThat(first.tokens()).isEqualTo(HashModel.oracle(prompt, 8));
            assertThat(second.tokens()).isEqualTo(HashModel.oracle(prompt, 8));
        }
    }

    @Test
    void peersSeeOneRegionPerLayerAtAddressesThatStay() {
        try (EngineHarness engine = engine()) {
            KvCacheRegions regions = connector.ranks.getFirst().regions();
            List<Long> before = connector.ranks.getFirst().payload().metadata().baseAddresses();
            engine.made(engine.engine.sleep(2, PauseMode.ABORT));
            engine.made(engine.engine.wake(null));

            assertThat(regions.regions())
                    .extracting(KvCacheRegions.Region::name)
                    .containsExactly(
                            "model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn");
            assertThat(connector.ranks.getFirst().payload().metadata().baseAddresses())
                    .isEqualTo(before);
            assertThat(before.get(1) - before.get(0)).isEqualTo(KV_BYTES / 2);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void keptRequestsGoOnWithTheSameTokens(int level) {
        try (EngineHarness engine = engine()) {
            RecordingListener running = engine.submit("running", prompt(1, 9), 30);
            RecordingListener sampled =
                    engine.submit("sampled", prompt(2, 9), Samplings.seeded(30, 3), null);
            for (int i = 0; i < 10; i++) {
                engine.step();
            }
            engine.made(engine.engine.sleep(level, PauseMode.KEEP));
            int tokens = running.tokens().size();
            engine.settle();
            assertThat(running.tokens()).hasSize(tokens).hasSizeBetween(5, 20);
            engine.made(engine.engine.wake(null));
            engine.settle();

            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 30));
            RecordingListener again =
                    engine.submit("again", prompt(2, 9), Samplings.seeded(30, 3), null);
            engine.settle();
            assertThat(sampled.tokens()).hasSize(30).isEqualTo(again.tokens());
        }
    }

    @Test
    void waitLetsEveryRequestFinishFirst() {
        try (EngineHarness engine = engine()) {
            RecordingListener running = engine.submit("running", prompt(1, 9), 30);
            engine.step();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.WAIT);
            engine.step();
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.PAUSING);
            assertThat(engine.engine.state().paused()).isFalse();
            RecordingListener late = engine.submit("late", prompt(2, 9), 3);
            engine.made(sleep);

            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 30));
            assertThat(late.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
        }
    }

    @Test
    void abortEndsRequestsAtOnce() {
        try (EngineHarness engine = engine()) {
            RecordingListener running = engine.submit("running", prompt(1, 9), 30);
            engine.step();
            engine.step();
            engine.made(engine.engine.sleep(1, PauseMode.ABORT));

            assertThat(running.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(running.tokens()).hasSizeLessThan(5);
            RecordingListener asleep = engine.submit("asleep", prompt(1, 9), 3);
            engine.settle();
            assertThat(asleep.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
            assertThat(asleep.failed().message()).contains("asleep");
        }
    }

    @ParameterizedTest
    @EnumSource(PauseMode.class)
    void theKvCacheStaysUntilHeldPromptsWereRead(PauseMode mode) {
        try (EngineHarness engine = engine()) {
            engine.submit("p", prompt(1, 9), 1, FakeConnector.remoteDecode());
            engine.settle();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, mode);
            engine.settle();
            assertThat(sleep).isNotDone();
            assertThat(connector.calls).doesNotContain("withdraw");
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.PAUSING);

            connector.endHold(connector.held.iterator().next());
            assertThat(engine.made(sleep).changed()).isTrue();
            engine.made(engine.engine.wake(null));
            expectOracle(engine, "after", 3);
        }
    }

    @ParameterizedTest
    @EnumSource(PauseMode.class)
    void theKvCacheStaysUntilReadsEnded(PauseMode mode) {
        try (EngineHarness engine = engine()) {
            List<Integer> prompt = prompt(1, 9);
            RecordingListener listener =
                    engine.submit("d", prompt, 6, connector.remotePrefill(prompt));
            engine.settle();
            String id = connector.reads.keySet().iterator().next();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, mode);
            engine.settle();
            assertThat(sleep).isNotDone();
            connector.endRead(id, true);
            engine.made(sleep);
            engine.made(engine.engine.wake(null));
            engine.settle();

            switch (mode) {
                case ABORT -> assertThat(listener.reason()).isEqualTo(FinishReason.ABORT);
                case WAIT, KEEP ->
                        assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 6));
            }
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void aKeptRequestThatWasNotReadIsComputedHereAfterTheWake() {
        FakeConnector one = connector;
        EngineConfig oneSlot = EngineHarness.config(64, 1, 64, true);
        try (EngineHarness engine = new EngineHarness(oneSlot, one).opened()) {
            engine.submit("first", prompt(2, 5), 50);
            engine.step();
            List<Integer> prompt = prompt(1, 9);
            RecordingListener waiting =
                    engine.submit("waiting", prompt, 6, one.remotePrefill(prompt));
            engine.step();
            engine.made(engine.engine.sleep(1, PauseMode.KEEP));
            engine.made(engine.engine.wake(null));
            engine.settle();

            assertThat(waiting.tokens()).isEqualTo(HashModel.oracle(prompt, 6));
            assertThat(one.reads).as("its lease may have ended meanwhile").isEmpty();
            assertThat(one.allocations.get(FakeConnector.idOf(one.allocations.keySet(), "waiting")))
                    .containsExactly(0, 0);
        }
    }
<<<<<<< HEAD

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
                assertThat(late.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
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
            assertThat(engine.engine.statistics().transitions())
                    .as("only what changed is measured")
                    .extracting(EngineStatistics.TransitionSample::operation)
                    .containsExactly("sleep");
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
    void anyTwoTransitionsInARowLeaveAnEngineThatServesAgain() {
        try (EngineHarness engine = engine()) {
            int pairs = 0;
            for (int first = 0; first < 7; first++) {
                for (int second = 0; second < 7; second++) {
                    RecordingListener running = engine.submit("running", prompt(1, 9), 12);
                    engine.step();
                    engine.step();
                    CompletableFuture<TransitionReport> one = call(engine, first);
                    CompletableFuture<TransitionReport> two = call(engine, second);
                    engine.stepUntil("both end", () -> one.isDone() && two.isDone());
                    engine.made(engine.engine.wake(null));
                    if (engine.engine.state().phase() != Phase.AWAKE) {
                        engine.made(engine.engine.resume());
                    }
                    engine.settle();
                    assertThat(running.isOver()).as("%d then %d", first, second).isTrue();
                    if (running.reason() != FinishReason.ABORT) {
                        assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 12));
                    }
                    expectOracle(engine, "after " + first + " then " + second, 2);
                    pairs++;
                }
            }
            assertThat(pairs).isEqualTo(49);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    private static CompletableFuture<TransitionReport> call(EngineHarness engine, int which) {
        return switch (which) {
            case 0 -> engine.engine.sleep(0, PauseMode.KEEP);
            case 1 -> engine.engine.sleep(1, PauseMode.KEEP);
            case 2 -> engine.engine.sleep(2, PauseMode.WAIT);
            case 3 -> engine.engine.pause(PauseMode.ABORT, true);
            case 4 -> engine.engine.pause(PauseMode.KEEP, false);
            case 5 -> engine.engine.resume();
            default -> engine.engine.wake(null);
        };
    }
=======
>>>>>>> engine
}
