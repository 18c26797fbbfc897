package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.StopReason;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Scheduling without other engines and without sleep. */
final class GenerationTest {
    @Test
    void tokensEqualTheOracleForPromptsAroundABlock() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            for (int length : new int[] {1, BLOCK_TOKENS - 1, BLOCK_TOKENS, BLOCK_TOKENS + 1, 23}) {
                List<Integer> prompt = prompt(length, length);

                assertThat(engine.generate("r" + length, prompt, 9))
                        .as("prompt of %d tokens", length)
                        .isEqualTo(HashModel.oracle(prompt, 9));
            }
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void requestsTogetherGetWhatEachGetsAlone() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(64, 4, 7, true), null).opened()) {
            List<RecordingListener> listeners = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                listeners.add(engine.submit("r" + i, prompt(i, 3 + 2 * i), 5 + i));
            }
            engine.settle();

            for (int i = 0; i < 10; i++) {
                assertThat(listeners.get(i).tokens())
                        .as("request %d", i)
                        .isEqualTo(HashModel.oracle(prompt(i, 3 + 2 * i), 5 + i));
                assertThat(listeners.get(i).reason()).isEqualTo(FinishReason.LENGTH);
            }
            assertThat(engine.model().chunkSizes()).as("budget").allMatch(size -> size <= 7);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void aLongPromptDoesNotStopThoseThatGenerate() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(64, 4, 8, true), null).opened()) {
            RecordingListener first = engine.submit("first", prompt(1, 3), 30);
            engine.step();
            RecordingListener second = engine.submit("second", prompt(2, 40), 2);
            int before = first.tokens().size();
            for (int i = 0; i < 5; i++) {
                engine.step();
            }

            assertThat(first.tokens()).hasSize(before + 5);
            engine.settle();
            assertThat(first.tokens()).isEqualTo(HashModel.oracle(prompt(1, 3), 30));
            assertThat(second.tokens()).isEqualTo(HashModel.oracle(prompt(2, 40), 2));
        }
    }

    @Test
    void theYoungestGivesItsBlocksAndIsComputedAgain() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(9, 4, 16, false), null).opened()) {
            List<RecordingListener> listeners = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                listeners.add(engine.submit("r" + i, prompt(i, 6), 20));
            }
            engine.settle();

            for (int i = 0; i < 4; i++) {
                assertThat(listeners.get(i).tokens()).isEqualTo(HashModel.oracle(prompt(i, 6), 20));
            }
            EngineStatistics statistics = engine.engine.statistics();
            assertThat(statistics.preemptions()).isPositive();
            assertThat(statistics.kvBlocksFree()).isEqualTo(9);
            assertThat(statistics.generatedTokens()).isEqualTo(80);
        }
    }

    @Test
    void theOldestNeverLosesItsBlocks() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(9, 4, 16, false), null).opened()) {
            List<RecordingListener> listeners = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                listeners.add(engine.submit("r" + i, prompt(i, 6), 20));
            }
            List<Integer> ended = new ArrayList<>();
            engine.stepUntil(
                    "all end",
                    () -> {
                        for (int i = 0; i < 4; i++) {
                            if (listeners.get(i).isOver() && !ended.contains(i)) {
                                ended.add(i);
                            }
                        }
                        return ended.size() == 4;
                    });

            assertThat(ended).containsExactly(0, 1, 2, 3);
        }
    }

    @Test
    void aRepeatedPromptIsFoundInThePrefixCache() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<Integer> prompt = prompt(3, 4 * BLOCK_TOKENS);
            List<Integer> oracle = HashModel.oracle(prompt, 6);
            RecordingListener first = engine.submit("first", prompt, 6);
            engine.settle();
            RecordingListener second = engine.submit("second", prompt, 6);
            engine.settle();

            assertThat(first.finished().usage().cachedTokens()).isZero();
            // The block of the last token is computed again: its logits are needed.
            assertThat(second.finished().usage().cachedTokens()).isEqualTo(3 * BLOCK_TOKENS);
            assertThat(first.tokens()).isEqualTo(oracle);
            assertThat(second.tokens()).isEqualTo(oracle);
            assertThat(engine.engine.statistics().computedPromptTokens())
                    .isEqualTo(4 * BLOCK_TOKENS + BLOCK_TOKENS);
        }
    }

    @Test
    void requestsThatShareAPrefixAtTheSameTimeDoNotDisturbEachOther() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<Integer> prompt = prompt(3, 2 * BLOCK_TOKENS);
            RecordingListener first = engine.submit("first", prompt, 20);
            for (int i = 0; i < 4; i++) {
                engine.step();
            }
            RecordingListener second = engine.submit("second", prompt, 20);
            RecordingListener third = engine.submit("third", prompt, 20);
            engine.settle();

            List<Integer> oracle = HashModel.oracle(prompt, 20);
            assertThat(first.tokens()).isEqualTo(oracle);
            assertThat(second.tokens()).isEqualTo(oracle);
            assertThat(third.tokens()).isEqualTo(oracle);
        }
    }

    @Test
    void aStopTokenEndsTheSequence() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<Integer> prompt = prompt(5, 7);
            List<Integer> oracle = HashModel.oracle(prompt, 10);
            int stop = oracle.get(3);
            int stopsAt = oracle.indexOf(stop);
            SamplingParameters sampling = Samplings.until(10, stop);
            RecordingListener listener = engine.submit("r", prompt, sampling, null);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(oracle.subList(0, stopsAt + 1));
            assertThat(listener.reason()).isEqualTo(FinishReason.STOP);
            assertThat(listener.finished().stopReason()).isEqualTo(new StopReason.Token(stop));
            assertThat(listener.finished().usage().completionTokens()).isEqualTo(stopsAt + 1);
        }
    }

    @Test
    void theModelsLengthEndsTheSequence() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<Integer> prompt = prompt(5, 190);
            RecordingListener listener = engine.submit("r", prompt, 100);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 10));
            assertThat(listener.reason()).isEqualTo(FinishReason.LENGTH);
        }
    }

    @Test
    void whatCanNeverBeServedIsRefusedWithFigures() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(10, 4, 16, true), null).opened()) {
            RecordingListener tooLong = engine.submit("a", prompt(1, 200), 1);
            RecordingListener cut = engine.submit("b", prompt(1, 30), 12);
            RecordingListener fits = engine.submit("c", prompt(1, 30), 11);
            RecordingListener empty = engine.submit("d", List.of(), 1);
            RecordingListener alien = engine.submit("e", List.of(1, HashModel.VOCABULARY), 1);
            engine.settle();

            assertThat(tooLong.failed().kind()).isEqualTo(FailureKind.INVALID_REQUEST);
            assertThat(tooLong.failed().message()).contains("200 tokens", "length is 41");
            assertThat(cut.tokens()).isEqualTo(HashModel.oracle(prompt(1, 30), 11));
            assertThat(cut.reason()).isEqualTo(FinishReason.LENGTH);
            assertThat(fits.tokens()).isEqualTo(HashModel.oracle(prompt(1, 30), 11));
            assertThat(empty.failed().kind()).isEqualTo(FailureKind.INVALID_REQUEST);
            assertThat(alien.failed().message()).contains("61", "vocabulary");
        }
    }

    @Test
    void aKvCacheThatCannotHoldOneWholeSequenceIsRefusedAtTheStart() {
        EngineConfig fits = EngineHarness.config(10, 4, 16, true);
        assertThat(fits.maxModelLength()).isEqualTo(41);
        EngineConfig tooSmall =
                new EngineConfig(
                        "hash",
                        fits.kvCacheBytes(),
                        fits.blockTokens(),
                        fits.kvType(),
                        42,
                        4,
                        16,
                        1000,
                        true,
                        true,
                        false,
                        true,
                        true);

        assertThatThrownBy(() -> new EngineHarness(tooSmall, null))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("--max-model-len 42 tokens needs 11 KV blocks")
                .hasMessageContaining("--kv-cache-memory")
                .hasMessageContaining("lower --max-model-len to 41");
    }

    @Test
    void aPromptIsLookedUpOnceInTheFiguresAndNotWithoutAPrefixCache() {
        for (boolean caching : new boolean[] {true, false}) {
            try (EngineHarness engine =
                    new EngineHarness(EngineHarness.config(9, 4, 16, caching), null).opened()) {
                List<RecordingListener> all = new ArrayList<>();
                for (int i = 0; i < 3; i++) {
                    all.add(engine.submit("r" + i, prompt(i, 5), 20));
                }
                engine.settle();
                EngineStatistics statistics = engine.engine.statistics();
                assertThat(statistics.preemptions()).isPositive();
                assertThat(statistics.prefixCacheQueries()).isEqualTo(caching ? 15 : 0);
                assertThat(statistics.prefixCacheHits()).isZero();
                assertThat(all).allMatch(RecordingListener::isOver);
            }
        }
    }

    @Test
    void tooManyRequestsAreRefusedAtOnce() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            int limit = 8 + 1000;
            for (int i = 0; i < limit; i++) {
                engine.submit("r" + i, prompt(i, 2), 1);
            }
            RecordingListener refused = engine.submit("one more", prompt(1, 2), 1);

            assertThat(refused.failed().kind()).isEqualTo(FailureKind.UNAVAILABLE);
            assertThat(refused.failed().message()).contains("1008");
            engine.settle();
            assertThat(engine.generate("one more", prompt(1, 2), 3))
                    .isEqualTo(HashModel.oracle(prompt(1, 2), 3));
        }
    }

    @Test
    void anIdIsFreeAgainAfterItsRequestEnded() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            engine.submit("same", prompt(1, 5), 3);

            assertThatThrownBy(() -> engine.submit("same", prompt(2, 5), 3))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("same");
            engine.settle();
            assertThat(engine.generate("same", prompt(2, 5), 3))
                    .isEqualTo(HashModel.oracle(prompt(2, 5), 3));
        }
    }

    @Test
    void anAbortEndsARequestWhereverItIs() {
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(64, 1, 8, true), null).opened()) {
            RecordingListener running = engine.submit("running", prompt(1, 5), 50);
            RecordingListener waiting = engine.submit("waiting", prompt(2, 5), 50);
            engine.step();
            engine.step();
            engine.engine.abort("running");
            engine.engine.abort("running");
            engine.engine.abort("waiting");
            engine.engine.abort("unknown");
            engine.settle();

            assertThat(running.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 5), 2));
            assertThat(waiting.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(waiting.tokens()).isEmpty();
            assertThat(running.eventsAfterLast()).isZero();
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(engine.engine.statistics().running()).isZero();
        }
    }

    @Test
    void anAbortGivesTheTextThatWasHeldBack() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            int first = HashModel.oracle(prompt(1, 5), 1).getFirst();
            SamplingParameters sampling = Samplings.until(50, first + " never");
            RecordingListener listener = engine.submit("r", prompt(1, 5), sampling, null);
            engine.step();
            assertThat(listener.tokens()).containsExactly(first);
            assertThat(listener.text()).isEmpty();
            engine.engine.abort("r");
            engine.settle();

            assertThat(listener.text()).isEqualTo(first + " ");
        }
    }

    @Test
    void aFailedStepFailsItsRequestsAndNoOthers() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            RecordingListener hit = engine.submit("hit", prompt(1, 5), 5);
            engine.model().failForwards(1);
            engine.settle();

            assertThat(hit.failed().kind()).isEqualTo(FailureKind.INTERNAL);
            assertThat(hit.failed().message()).contains("made to fail");
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(engine.generate("next", prompt(1, 5), 5))
                    .isEqualTo(HashModel.oracle(prompt(1, 5), 5));
        }
    }

    @Test
    void anOutputThatCannotBeMadeFailsItsRequestAndNoOthers() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<Integer> oracle = HashModel.oracle(prompt(1, 5), 3);
            engine.undecodable = oracle.get(2);
            RecordingListener hit = engine.submit("hit", prompt(1, 5), 5);
            engine.settle();
            engine.undecodable = -1;

            assertThat(hit.failed().kind()).isEqualTo(FailureKind.INTERNAL);
            assertThat(hit.tokens()).isEqualTo(oracle.subList(0, 2));
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(engine.generate("next", prompt(1, 5), 5))
                    .isEqualTo(HashModel.oracle(prompt(1, 5), 5));
        }
    }

    @Test
    void aListenerThatThrowsHarmsNobody() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            engine.engine.submit(
                    new GenerationRequest("bad", prompt(1, 5), SamplingParameters.greedy(5), null),
                    _ -> {
                        throw new IllegalStateException("made to fail");
                    });

            assertThat(engine.generate("good", prompt(2, 5), 5))
                    .isEqualTo(HashModel.oracle(prompt(2, 5), 5));
            engine.settle();
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void aSeedRepeatsASampledSequence() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            SamplingParameters sampling = Samplings.seeded(20, 7);
            RecordingListener first = engine.submit("first", prompt(4, 9), sampling, null);
            RecordingListener second = engine.submit("second", prompt(4, 9), sampling, null);
            engine.settle();

            assertThat(first.tokens()).hasSize(20).isEqualTo(second.tokens());
            assertThat(first.tokens()).isNotEqualTo(HashModel.oracle(prompt(4, 9), 20));
        }
    }
}
