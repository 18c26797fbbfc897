package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationEvent.PromptToken;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** A prompt's log probabilities are the model's own, however the prompt was computed. */
final class PromptLogprobsTest {
    private static SamplingParameters scored(int maxTokens, int top) {
        return new SamplingParameters(
                0,
                0,
                1,
                0,
                null,
                1,
                0,
                0,
                maxTokens,
                0,
                List.of(),
                Set.of(),
                false,
                null,
                top,
                TokenRules.NONE,
                false,
                true);
    }

    private static void requireScores(List<Integer> prompt, int top, RecordingListener listener) {
        List<PromptToken> scores = requireNonNull(listener.prompt(), "scores");
        assertThat(scores).hasSize(prompt.size() - 1);
        float[][] rows = HashModel.logits(prompt);
        for (int i = 0; i < scores.size(); i++) {
            float[] row = rows[i];
            int token = prompt.get(i + 1);
            double sum = IntStream.range(0, row.length).mapToDouble(t -> Math.exp(row[t])).sum();
            PromptToken score = scores.get(i);
            assertThat(score.logprobs().tokenId()).isEqualTo(token);
            assertThat((double) score.logprobs().logprob())
                    .isCloseTo(row[token] - Math.log(sum), within(1e-4));
            assertThat(score.rank())
                    .isEqualTo(
                            (int)
                                    IntStream.range(0, row.length)
                                            .filter(t -> row[t] >= row[token])
                                            .count());
            assertThat(score.logprobs().top())
                    .extracting(candidate -> candidate.tokenId())
                    .isEqualTo(
                            IntStream.range(0, row.length)
                                    .boxed()
                                    .sorted((a, b) -> Float.compare(row[b], row[a]))
                                    .limit(top)
                                    .toList());
        }
        assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, listener.tokens().size()));
    }

    @Test
    void areThoseOfEveryPositionHoweverThePromptIsCut() {
        for (int step : new int[] {3, 7, 64, 500}) {
            try (EngineHarness engine =
                    new EngineHarness(EngineHarness.config(64, Math.min(8, step), step, true), null)
                            .opened()) {
                for (int length : new int[] {1, 2, BLOCK_TOKENS, 3 * BLOCK_TOKENS + 1, 150}) {
                    RecordingListener listener =
                            engine.submit("r" + length, prompt(1, length), scored(4, 3), null);
                    engine.settle();
                    requireScores(prompt(1, length), 3, listener);
                }
            }
        }
    }

    @Test
    void areComputedThoughThePromptIsCachedAndLeaveItCachedForOthers() {
        List<Integer> prompt = prompt(2, 5 * BLOCK_TOKENS + 1);
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            assertThat(engine.generate("first", prompt, 3)).isEqualTo(HashModel.oracle(prompt, 3));
            RecordingListener listener = engine.submit("scored", prompt, scored(3, 0), null);
            engine.settle();
            requireScores(prompt, 0, listener);
            assertThat(listener.finished().usage().cachedTokens()).isZero();
            RecordingListener last =
                    engine.submit("last", prompt, SamplingParameters.greedy(3), null);
            engine.settle();
            assertThat(last.prompt()).isNull();
            assertThat(last.finished().usage().cachedTokens()).isEqualTo(5 * BLOCK_TOKENS);
        }
    }

    @Test
    void surviveTheLossOfBlocksAndNeighboursInTheSameStep() {
        Seeded.forAll(
                20,
                random -> {
                    EngineConfig tight = EngineHarness.config(14, 4, random.nextInt(5, 30), true);
                    try (EngineHarness engine = new EngineHarness(tight, null).opened()) {
                        List<RecordingListener> listeners = new ArrayList<>();
                        List<List<Integer>> prompts = new ArrayList<>();
                        for (int i = 0; i < 4; i++) {
                            prompts.add(Prompts.random(random, random.nextInt(2, 24)));
                            boolean scores = i != 1;
                            listeners.add(
                                    engine.submit(
                                            "r" + i,
                                            prompts.get(i),
                                            scores ? scored(12, 2) : SamplingParameters.greedy(12),
                                            null));
                        }
                        engine.settle();
                        for (int i = 0; i < 4; i++) {
                            if (i != 1) {
                                requireScores(prompts.get(i), 2, listeners.get(i));
                            }
                            assertThat(listeners.get(i).tokens())
                                    .isEqualTo(HashModel.oracle(prompts.get(i), 12));
                        }
                    }
                });
    }

    @Test
    void makeAnEngineComputeAPromptThatItCouldRead() {
        List<Integer> prompt = prompt(3, 3 * BLOCK_TOKENS + 1);
        FakeConnector connector = new FakeConnector(1);
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), connector).opened()) {
            RecordingListener listener =
                    engine.submit("r", prompt, scored(3, 1), connector.remotePrefill(prompt));
            engine.settle();
            assertThat(connector.reads).isEmpty();
            requireScores(prompt, 1, listener);
        }
    }

    @Test
    void aStepComputesABoundedNumberOfRows() {
        List<Integer> prompt = prompt(4, 150);
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.config(128, 8, 512, false), null).opened()) {
            List<RecordingListener> listeners =
                    List.of(
                            engine.submit("a", prompt, scored(1, 0), null),
                            engine.submit("b", prompt, scored(1, 0), null));
            engine.settle();
            listeners.forEach(listener -> requireScores(prompt, 0, listener));
            assertThat(engine.model().chunkSizes()).allMatch(size -> size <= 64);
        }
    }
}
