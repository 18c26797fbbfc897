package dev.dormouse.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.model.Logits;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class SamplerTest {
    private static final int END = 3;
    private final Candidates candidates = new Candidates();

    /** Parameters of a test, each at its neutral value until set. */
    private static final class Settings {
        private double temperature;
        private int topK;
        private double topP = 1;
        private double minP;
        private @Nullable Long seed = 7L;
        private double repetition = 1;
        private double presence;
        private double frequency;
        private int minTokens;
        private @Nullable Integer logprobs;
        private TokenRules rules = TokenRules.NONE;

        SamplingParameters build() {
            return new SamplingParameters(
                    temperature,
                    topK,
                    topP,
                    minP,
                    seed,
                    repetition,
                    presence,
                    frequency,
                    100,
                    minTokens,
                    List.of(),
                    Set.of(),
                    false,
                    logprobs,
                    null,
                    rules,
                    false,
                    true);
        }
    }

    private static Logits row(float... values) {
        return new Logits(values.clone(), 1, values.length);
    }

    private Sampler sampler(Settings settings, Integer... prompt) {
        return new Sampler(settings.build(), List.of(prompt), Set.of(END), 1);
    }

    private Map<Integer, Integer> draw(Settings settings, int times, float... values) {
        Sampler sampler = sampler(settings);
        Map<Integer, Integer> counts = new HashMap<>();
        for (int i = 0; i < times; i++) {
            counts.merge(sampler.next(row(values), 0, candidates).tokenId(), 1, Integer::sum);
        }
        return counts;
    }

    @Test
    void greedyTakesTheLargestAndOfEqualsTheFirst() {
        assertThat(sampler(new Settings()).next(row(1, 5, 5, 0), 0, candidates).tokenId())
                .isEqualTo(1);
    }

    @Test
    void aTemperatureThatLeavesNoNumbersIsGreedy() {
        Settings settings = new Settings();
        for (double temperature : new double[] {1e-50, Double.MIN_VALUE, 1e-38, 9e-6, 1e-5}) {
            settings.temperature = temperature;
            assertThat(draw(settings, 5, 1, 5, 4.99f, -3))
                    .as("%s", temperature)
                    .containsOnlyKeys(1);
        }
    }

    @Test
    void readsOnlyItsOwnRow() {
        Logits two = new Logits(new float[] {9, 0, 0, 0, 5, 0}, 2, 3);
        assertThat(sampler(new Settings()).next(two, 1, candidates).tokenId()).isEqualTo(1);
    }

    @Test
    void drawsInProportionToProbability() {
        Settings settings = new Settings();
        settings.temperature = 1;
        Map<Integer, Integer> counts = draw(settings, 20_000, 0f, (float) Math.log(3));
        assertThat(counts.getOrDefault(1, 0) / 20_000.0).isCloseTo(0.75, within(0.02));
    }

    @Test
    void temperatureSharpensAndFlattens() {
        Settings settings = new Settings();
        settings.temperature = 0.5;
        Map<Integer, Integer> counts = draw(settings, 20_000, 0f, (float) Math.log(3));
        assertThat(counts.getOrDefault(1, 0) / 20_000.0).isCloseTo(0.9, within(0.02));
    }

    @Test
    void topKKeepsThatManyAndPrefersTheSmallerTokenOfEquals() {
        Settings settings = new Settings();
        settings.temperature = 1;
        settings.topK = 2;
        assertThat(draw(settings, 2_000, 1, 4, 3, 3, 0).keySet()).containsExactlyInAnyOrder(1, 2);
    }

    @Test
    void topPKeepsTheSmallestSetThatReachesIt() {
        Settings settings = new Settings();
        settings.temperature = 1;
        settings.topP = 0.7;
        float[] logits = {
            (float) Math.log(0.15),
            (float) Math.log(0.5),
            (float) Math.log(0.25),
            (float) Math.log(0.1)
        };
        assertThat(draw(settings, 2_000, logits).keySet()).containsExactlyInAnyOrder(1, 2);
        settings.topP = 0.5;
        assertThat(draw(settings, 2_000, logits).keySet()).containsExactly(1);
    }

    @Test
    void minPDropsTokensBelowAShareOfTheLikeliest() {
        Settings settings = new Settings();
        settings.temperature = 1;
        settings.minP = 0.4;
        float[] logits = {
            (float) Math.log(0.15),
            (float) Math.log(0.5),
            (float) Math.log(0.25),
            (float) Math.log(0.1)
        };
        assertThat(draw(settings, 2_000, logits).keySet()).containsExactlyInAnyOrder(1, 2);
    }

    @Test
    void theSameSeedRepeatsTheSequenceAndAnotherDoesNot() {
        Settings settings = new Settings();
        settings.temperature = 1;
        float[] flat = new float[1000];
        List<Integer> first = sequence(settings, flat);
        assertThat(sequence(settings, flat)).isEqualTo(first);
        settings.seed = 8L;
        assertThat(sequence(settings, flat)).isNotEqualTo(first);
    }

    private List<Integer> sequence(Settings settings, float[] values) {
        Sampler sampler = sampler(settings);
        return IntStream.range(0, 20)
                .mapToObj(i -> sampler.next(row(values), 0, candidates).tokenId())
                .toList();
    }

    @Test
    void aTokenThatAnotherSamplerChoseCountsAsIfItHadBeenChosenHere() {
        Settings settings = new Settings();
        float[] values = {0.3f, 0.2f, 0.1f, 0.4f};
        for (double temperature : new double[] {0, 1}) {
            settings.temperature = temperature;
            settings.repetition = 1.5;
            settings.frequency = 0.1;
            settings.minTokens = 3;
            settings.rules = new TokenRules(Map.of(), null, List.of(List.of(0, 0), List.of(1, 1)));
            for (long seed = 0; seed < 20; seed++) {
                settings.seed = seed;
                List<Integer> alone = sequenceOf(sampler(settings), values, 8);
                Sampler other = sampler(settings);
                other.skip(alone.getFirst());
                assertThat(sequenceOf(other, values, 7))
                        .as("temperature %s, seed %d", temperature, seed)
                        .isEqualTo(alone.subList(1, 8));
            }
        }
    }

    @Test
    void repetitionPenaltyCountsPromptAndOutput() {
        Settings settings = new Settings();
        settings.repetition = 2;
        Sampler sampler = sampler(settings, 1);
        float[] values = {2, 3, 1.9f, -1};
        assertThat(sampler.next(row(values), 0, candidates).tokenId()).isEqualTo(0);
        assertThat(sampler.next(row(values), 0, candidates).tokenId()).isEqualTo(2);
    }

    @Test
    void presenceAndFrequencyPenaltiesCountTheOutputOnly() {
        Settings settings = new Settings();
        settings.presence = 1;
        settings.frequency = 0.5;
        Sampler sampler = sampler(settings, 0);
        float[] values = {3, 1.2f, 1.1f, 0};
        assertThat(sequenceOf(sampler, values, 5)).containsExactly(0, 0, 1, 2, 0);
    }

    private List<Integer> sequenceOf(Sampler sampler, float[] values, int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> sampler.next(row(values), 0, candidates).tokenId())
                .toList();
    }

    @Test
    void endTokensAreMaskedBelowMinTokens() {
        Settings settings = new Settings();
        settings.minTokens = 2;
        assertThat(sequenceOf(sampler(settings), new float[] {0, 1, 2, 9}, 3))
                .containsExactly(2, 2, END);
    }

    @Test
    void onlyAllowedTokensAreChosen() {
        Settings settings = new Settings();
        settings.rules = new TokenRules(Map.of(), Set.of(0, 2), List.of());
        float[] values = {1, 9, 2, 8};
        assertThat(sequenceOf(sampler(settings), values, 3)).containsExactly(2, 2, 2);
        settings.temperature = 1;
        assertThat(draw(settings, 2_000, values).keySet()).containsExactlyInAnyOrder(0, 2);
    }

    @Test
    void aBiasIsAddedToTheLogit() {
        Settings settings = new Settings();
        settings.rules = new TokenRules(Map.of(0, 5f, 1, -100f), null, List.of());
        assertThat(sequenceOf(sampler(settings), new float[] {1, 9, 5.5f, 0}, 2))
                .containsExactly(0, 0);
        settings.rules = new TokenRules(Map.of(0, 4f, 1, -100f), null, List.of());
        assertThat(sequenceOf(sampler(settings), new float[] {1, 9, 5.5f, 0}, 2))
                .containsExactly(2, 2);
    }

    @Test
    void aBannedRunNeverCompletesButItsBeginningMayStand() {
        Settings settings = new Settings();
        settings.rules =
                new TokenRules(
                        Map.of(), null, List.of(List.of(1), List.of(2, 2), List.of(2, 0, 2)));
        assertThat(sequenceOf(sampler(settings), new float[] {3, 9, 5, 1}, 6))
                .containsExactly(2, 0, 0, 2, 0, 0);
    }

    @Test
    void rulesThatLeaveNothingAreAnErrorAndNotTheFirstToken() {
        Settings settings = new Settings();
        settings.rules = new TokenRules(Map.of(), Set.of(1), List.of(List.of(1, 1)));
        Sampler sampler = sampler(settings);
        assertThat(sampler.next(row(5, 1, 2), 0, candidates).tokenId()).isEqualTo(1);
        assertThatThrownBy(() -> sampler.next(row(5, 1, 2), 0, candidates))
                .isInstanceOf(NoTokenLeftException.class);
        settings.rules = new TokenRules(Map.of(), Set.of(END), List.of());
        settings.minTokens = 1;
        settings.temperature = 1;
        Sampler ending = sampler(settings);
        assertThatThrownBy(() -> ending.next(row(5, 1, 2, 3), 0, candidates))
                .isInstanceOf(NoTokenLeftException.class);
    }

    @Test
    void rulesComeBeforePenaltiesAsInVllm() {
        Settings settings = new Settings();
        settings.repetition = 2;
        settings.rules = new TokenRules(Map.of(0, 4f), null, List.of());
        // (1 + 4) / 2 = 2.5 for the token of the prompt; the other order would give 4.5.
        Sampler sampler = sampler(settings, 0);
        assertThat(sampler.next(row(1, 3, 0, 0), 0, candidates).tokenId()).isEqualTo(1);
    }

    @Test
    void logprobsAreThoseOfTheModelBeforePenalties() {
        Settings settings = new Settings();
        settings.logprobs = 2;
        settings.repetition = 10;
        float[] values = {(float) Math.log(0.5), (float) Math.log(0.3), (float) Math.log(0.2)};
        Sampler sampler = sampler(settings, 0);
        var sampled = Objects.requireNonNull(sampler.next(row(values), 0, candidates).logprobs());
        assertThat(sampled.tokenId()).isEqualTo(1);
        assertThat(Math.exp(sampled.logprob())).isCloseTo(0.3, within(1e-5));
        assertThat(sampled.top()).extracting(Candidate::tokenId).containsExactly(0, 1);
        assertThat(Math.exp(sampled.top().get(0).logprob())).isCloseTo(0.5, within(1e-5));
    }

    @Test
    void noLogprobsAreMadeWhenNoneAreWanted() {
        assertThat(sampler(new Settings()).next(row(1, 2), 0, candidates).logprobs()).isNull();
    }
}
