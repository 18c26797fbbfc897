package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.memory.MemoryUsage;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Natives;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/**
 * Sleep and wake of three ranks with weights and KV of their own: whatever fails on the second
 * rank, all of them are as before, or the engine says that it has failed.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class RankedSleepTest {
    private static final int TOKENS = 4;
    private static final int RANKS = 3;

    private GgufFile file;
    private List<Integer> prompt;
    private List<Integer> expected;

    @BeforeAll
    void askOneRank() {
        file = GgufFile.open(Natives.model());
        prompt =
                Arrays.stream(
                                Tokenizer.of(file.metadata())
                                        .encode(
                                                "The dormouse sleeps through the winter, and when it wakes in spring, it",
                                                true,
                                                false))
                        .boxed()
                        .toList();
        try (RankedEngine one = new RankedEngine(file, 1, null)) {
            expected = one.generate("one", prompt, TOKENS);
        }
        assertThat(expected).hasSize(TOKENS);
    }

    @AfterAll
    void close() {
        file.close();
    }

    /** Three ranks, and a connector of which steps may fail, too. */
    private final class Sleeper implements AutoCloseable {
        final FakeConnector connector = new FakeConnector(RANKS);
        final RankedEngine ranked = new RankedEngine(file, RANKS, connector.halves());
        private int requests;

        /** Begins to fail, or ends. */
        void fail(String step, boolean fails) {
            switch (step) {
                case "prepare 1" -> connector.ranks.get(1).failPrepare = fails;
                case "release 1" -> connector.ranks.get(1).failRelease = fails;
                case "register 1" -> connector.ranks.get(1).failRestore = fails;
                case "publish" -> connector.failPublish = fails;
                default -> {
                    if (fails) {
                        ranked.faults.add(step);
                    } else {
                        ranked.faults.remove(step);
                    }
                }
            }
        }

        void expectTokens(String when) {
            assertThat(ranked.generate("r" + requests++, prompt, TOKENS))
                    .as(when)
                    .isEqualTo(expected);
        }

        TransitionReport made(CompletableFuture<TransitionReport> transition) {
            return ranked.ended(transition).join();
        }

        void refused(CompletableFuture<TransitionReport> transition, String why) {
            assertThatThrownBy(() -> ranked.ended(transition).join())
                    .as(why)
                    .hasMessageContaining(why);
        }

        @Override
        public void close() {
            ranked.close();
        }
    }

    @Test
    void threeRanksGiveTheirMemoryBackAndComeBackWithTheSameTokens() {
        try (Sleeper sleeper = new Sleeper()) {
            sleeper.expectTokens("awake");
            for (int level = 1; level <= 2; level++) {
                long awake = MemoryUsage.ofThisProcess().pssShmemBytes();
                TransitionReport report =
                        sleeper.made(sleeper.ranked.engine.sleep(level, PauseMode.ABORT));
                long asleep = MemoryUsage.ofThisProcess().pssShmemBytes();
                assertThat(awake - asleep)
                        .isGreaterThanOrEqualTo(RankedEngine.KV_BLOCKS * RankedEngine.BLOCK_BYTES);
                assertThat(report.state().phase()).isEqualTo(Phase.ASLEEP);
                sleeper.made(sleeper.ranked.engine.wake(Set.of(WakeTag.WEIGHTS)));
                sleeper.made(sleeper.ranked.engine.wake(null));
                sleeper.expectTokens("after level " + level);
            }
            assertThat(sleeper.connector.scheduling.epoch()).isEqualTo(3);
        }
    }

    @Test
    void aSleepThatFailsOnOneRankIsUndoneOnAll() {
        try (Sleeper sleeper = new Sleeper()) {
            for (String step : List.of("prepare 1", "release 1", "unmap 1", "unmap 2")) {
                for (int level = 1; level <= 2; level++) {
                    sleeper.fail(step, true);
                    sleeper.refused(
                            sleeper.ranked.engine.sleep(level, PauseMode.ABORT), "was undone");
                    assertThat(sleeper.ranked.engine.state().phase())
                            .as(step)
                            .isEqualTo(Phase.AWAKE);
                    sleeper.fail(step, false);
                    sleeper.expectTokens("after " + step);
                }
            }
            sleeper.made(sleeper.ranked.engine.sleep(2, PauseMode.ABORT));
            sleeper.made(sleeper.ranked.engine.wake(null));
            sleeper.expectTokens("after all");
        }
    }

    @Test
    void aWakeThatFailsOnOneRankLeavesAllAsleep() {
        try (Sleeper sleeper = new Sleeper()) {
            long awake = MemoryUsage.ofThisProcess().pssShmemBytes();
            for (String step : List.of("map 1", "load 1", "register 1", "publish")) {
                sleeper.made(sleeper.ranked.engine.sleep(2, PauseMode.ABORT));
                long asleep = MemoryUsage.ofThisProcess().pssShmemBytes();
                long epoch = sleeper.connector.scheduling.epoch();
                sleeper.fail(step, true);
                sleeper.refused(sleeper.ranked.engine.wake(null), "was undone");
                assertThat(sleeper.ranked.engine.state().phase()).as(step).isEqualTo(Phase.ASLEEP);
                assertThat(MemoryUsage.ofThisProcess().pssShmemBytes())
                        .as("%s: asleep, of %d", step, awake)
                        .isLessThan(asleep + (awake - asleep) / 20);
                assertThat(sleeper.connector.ranks).allMatch(FakeConnector.Rank::isReleased);
                assertThat(sleeper.connector.scheduling.epoch()).isEqualTo(epoch);
                sleeper.fail(step, false);
                sleeper.made(sleeper.ranked.engine.wake(null));
                assertThat(sleeper.connector.scheduling.epoch()).isEqualTo(epoch + 1);
                sleeper.expectTokens("after " + step);
            }
        }
    }

    @Test
    void ifUndoingFailsAsWellTheEngineSaysSo() {
        for (List<String> steps :
                List.of(
                        List.of("release 1", "register 1"),
                        List.of("unmap 1", "map 0"),
                        List.of("unmap 1", "load 0"))) {
            try (Sleeper sleeper = new Sleeper()) {
                steps.forEach(step -> sleeper.fail(step, true));
                sleeper.refused(
                        sleeper.ranked.engine.sleep(2, PauseMode.ABORT), "could not be undone");
                assertThat(sleeper.ranked.engine.state().phase())
                        .as("%s", steps)
                        .isEqualTo(Phase.FAILED);
            }
        }
        try (Sleeper sleeper = new Sleeper()) {
            sleeper.made(sleeper.ranked.engine.sleep(2, PauseMode.ABORT));
            sleeper.fail("load 1", true);
            sleeper.fail("unmap 0", true);
            sleeper.refused(sleeper.ranked.engine.wake(null), "could not be undone");
            assertThat(sleeper.ranked.engine.state().phase()).isEqualTo(Phase.FAILED);
            RecordingListener late = sleeper.ranked.submit("late", prompt, TOKENS, null);
            sleeper.ranked.step();
            assertThat(late.failed().message()).contains("failed");
        }
    }
}
