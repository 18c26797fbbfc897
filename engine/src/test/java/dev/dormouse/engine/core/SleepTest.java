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
                            "prepare 0",
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
    void peersSeeOneRegionPerLayer() {
        try (EngineHarness engine = engine()) {
            List<KvCacheRegions.Region> regions = connector.ranks.getFirst().regions().regions();

            assertThat(regions)
                    .extracting(KvCacheRegions.Region::name)
                    .containsExactly(
                            "model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn");
            assertThat(regions.get(1).address() - regions.get(0).address()).isEqualTo(KV_BYTES / 2);
            assertThat(regions)
                    .allMatch(region -> region.blocks() == engine.kvBlocks())
                    .allMatch(region -> region.strideBytes() == region.blockBytes());
        }
    }

    @Test
    void whatIsReadAfterAWakeGoesToTheSameAddresses() {
        try (EngineHarness engine = engine()) {
            connector.readsEndAtOnce = true;
            for (int number = 0; number < 3; number++) {
                engine.made(engine.engine.sleep(2, PauseMode.ABORT));
                engine.made(engine.engine.wake(null));
                List<Integer> prompt = prompt(number, 11);
                RecordingListener listener =
                        engine.submit("d" + number, prompt, 5, connector.remotePrefill(prompt));
                engine.settle();
                assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 5));
            }
            assertThat(engine.engine.statistics().computedPromptTokens()).isZero();
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
            assertThat(late.failed().kind()).isEqualTo(FailureKind.PAUSED);
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
            assertThat(connector.draining).as("renewals are ignored").isTrue();
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.PAUSING);

            connector.endHold(connector.held.iterator().next());
            assertThat(engine.made(sleep).changed()).isTrue();
            assertThat(connector.draining).isFalse();
            engine.made(engine.engine.wake(null));
            expectOracle(engine, "after", 3);
        }
    }

    @Test
    void aStuckReadMakesASleepFailAndNotHang() {
        try (EngineHarness engine = engine()) {
            List<Integer> prompt = prompt(1, 9);
            engine.submit("d", prompt, 6, connector.remotePrefill(prompt));
            engine.settle();
            String id = connector.reads.keySet().iterator().next();
            connector.abandonRead(id);
            connector.ranks.getFirst().failRelease = true;
            connector.reads.clear();
            CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.ABORT);
            engine.settle();
            assertThat(sleep).isCompletedExceptionally();
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
}
