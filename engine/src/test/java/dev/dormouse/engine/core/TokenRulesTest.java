package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Rules on tokens against a search of the model's own logits, without engine or sampler. */
final class TokenRulesTest {
    private static final int TOKENS = 12;

    private static SamplingParameters sampling(
            TokenRules rules, double repetition, int minTokens, Set<Integer> stops) {
        return new SamplingParameters(
                0,
                0,
                1,
                0,
                null,
                repetition,
                0.5,
                0.25,
                TOKENS,
                minTokens,
                List.of(),
                stops,
                false,
                null,
                null,
                rules,
                false,
                true);
    }

    @Test
    void theOutputIsTheBestThatTheRulesAllow() {
        Seeded.forAll(
                60,
                random -> {
                    List<Integer> prompt = Prompts.random(random, random.nextInt(1, 20));
                    TokenRules rules = rules(random);
                    double repetition = random.nextBoolean() ? 1 : 1.5;
                    int minTokens = random.nextInt(5);
                    Set<Integer> stops = Set.of(random.nextInt(HashModel.VOCABULARY));
                    try (EngineHarness engine =
                            new EngineHarness(EngineHarness.roomy(), null).opened()) {
                        RecordingListener listener =
                                engine.submit(
                                        "r",
                                        prompt,
                                        sampling(rules, repetition, minTokens, stops),
                                        null);
                        engine.settle();
                        assertThat(listener.tokens())
                                .isEqualTo(search(prompt, rules, repetition, minTokens, stops));
                    }
                });
    }

    private static TokenRules rules(RandomGenerator random) {
        Map<Integer, Float> bias = new HashMap<>();
        for (int i = random.nextInt(6); i > 0; i--) {
            bias.put(random.nextInt(HashModel.VOCABULARY), random.nextInt(-8, 8) / 4f);
        }
        @Nullable Set<Integer> allowed =
                random.nextBoolean()
                        ? null
                        : new HashSet<>(random.ints(12, 0, HashModel.VOCABULARY).boxed().toList());
        List<List<Integer>> banned = new ArrayList<>();
        for (int i = random.nextInt(8); i > 0; i--) {
            // Of few tokens, so that runs of several are met.
            List<Integer> pool =
                    allowed == null ? List.of(1, 2, 3) : List.copyOf(allowed).subList(0, 3);
            banned.add(
                    IntStream.range(0, random.nextInt(2, 4))
                            .mapToObj(_ -> pool.get(random.nextInt(3)))
                            .toList());
        }
        return new TokenRules(bias, allowed, banned);
    }

    private static List<Integer> search(
            List<Integer> prompt,
            TokenRules rules,
            double repetition,
            int minTokens,
            Set<Integer> stops) {
        List<Integer> all = new ArrayList<>(prompt);
        while (all.size() < prompt.size() + TOKENS) {
            List<Integer> output = all.subList(prompt.size(), all.size());
            float[] row = HashModel.logits(all)[all.size() - 1];
            int best = -1;
            float bestScore = 0;
            for (int token = 0; token < row.length; token++) {
                if (!mayFollow(output, token, rules, minTokens, stops)) {
                    continue;
                }
                float score = row[token] + rules.bias().getOrDefault(token, 0f);
                if (all.contains(token) && repetition != 1) {
                    score = score > 0 ? score / (float) repetition : score * (float) repetition;
                }
                int count = Collections.frequency(output, token);
                score -= count == 0 ? 0 : (float) (0.5 + count * 0.25);
                if (best < 0 || score > bestScore) {
                    best = token;
                    bestScore = score;
                }
            }
            all.add(best);
            if (stops.contains(best)) {
                break;
            }
        }
        return all.subList(prompt.size(), all.size());
    }

    private static boolean mayFollow(
            List<Integer> output, int token, TokenRules rules, int minTokens, Set<Integer> stops) {
        if (rules.allowed() != null && !rules.allowed().contains(token)) {
            return false;
        }
        if (output.size() < minTokens && stops.contains(token)) {
            return false;
        }
        List<Integer> longer = new ArrayList<>(output);
        longer.add(token);
        return rules.banned().stream()
                .noneMatch(
                        run ->
                                longer.size() >= run.size()
                                        && longer.subList(longer.size() - run.size(), longer.size())
                                                .equals(run));
    }

    @Test
    void aRequestWhoseRulesLeaveNothingIsRefusedAndNoFaultOfTheEngine() {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            RecordingListener listener =
                    engine.submit(
                            "r",
                            List.of(1, 2),
                            sampling(
                                    new TokenRules(Map.of(), Set.of(5), List.of(List.of(5, 5))),
                                    1,
                                    0,
                                    Set.of()),
                            null);
            engine.settle();
            assertThat(listener.tokens()).containsExactly(5);
            assertThat(listener.failed().kind()).isEqualTo(FailureKind.INVALID_REQUEST);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void tokensOutsideTheVocabularyAreRefused() {
        for (TokenRules rules :
                List.of(
                        new TokenRules(Map.of(HashModel.VOCABULARY, 1f), null, List.of()),
                        new TokenRules(Map.of(), Set.of(-1), List.of()),
                        new TokenRules(Map.of(), null, List.of(List.of(1, 1 << 20))))) {
            try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
                RecordingListener listener =
                        engine.submit("r", List.of(1), sampling(rules, 1, 0, Set.of()), null);
                engine.settle();
                assertThat(listener.failed().message()).contains("outside the vocabulary");
            }
        }
    }
}
