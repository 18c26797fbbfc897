package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The first token, which whoever reads a prompt takes from the engine that has computed it. */
final class FirstTokenTest {
    private static final List<Integer> PROMPT = prompt(1, 3 * BLOCK_TOKENS + 1);
    private static final int TOKENS = 6;
    private static final SamplingParameters GREEDY = SamplingParameters.greedy(TOKENS);
    private static final int FIRST = HashModel.oracle(PROMPT, 1).getFirst();

    /** Shows in the output if it is taken. */
    private static final int WRONG = (FIRST + 1) % HashModel.VOCABULARY;

    private final FakeConnector connector = new FakeConnector(1);

    /** Parameters of a test, each at some value until changed. */
    private static final class Settings {
        private double temperature = 1.5;
        private int topK = 20;
        private double topP = 0.9;
        private double minP = 0.01;
        private long seed = 7;
        private double repetition = 1.3;
        private double presence = 0.5;
        private double frequency = 0.25;
        private int minTokens;
        private @Nullable Integer logprobs;
        private TokenRules rules = TokenRules.NONE;

        private static SamplingParameters with(Consumer<Settings> change) {
            Settings settings = new Settings();
            change.accept(settings);
            return new SamplingParameters(
                    settings.temperature,
                    settings.topK,
                    settings.topP,
                    settings.minP,
                    settings.seed,
                    settings.repetition,
                    settings.presence,
                    settings.frequency,
                    TOKENS,
                    settings.minTokens,
                    List.of(),
                    Set.of(),
                    false,
                    settings.logprobs,
                    null,
                    settings.rules,
                    false,
                    true);
        }
    }

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    private static List<Integer> alone(List<Integer> prompt, SamplingParameters sampling) {
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            return answered(engine, "alone", prompt, sampling, null).tokens();
        }
    }

    private static RecordingListener answered(
            EngineHarness engine,
            String id,
            List<Integer> prompt,
            SamplingParameters sampling,
            @Nullable KvTransferParams params) {
        RecordingListener listener = engine.submit(id, prompt, sampling, params);
        engine.settle();
        return listener;
    }

    private static long taken(EngineHarness engine) {
        return engine.engine.statistics().remoteFirstTokens();
    }

    @Test
    void isTakenAndNothingOfThePromptIsComputed() {
        connector.readsEndAtOnce = true;
        try (EngineHarness engine = engine()) {
            int requests = 0;
            for (int length : new int[] {1, BLOCK_TOKENS - 1, BLOCK_TOKENS, BLOCK_TOKENS + 1, 22}) {
                List<Integer> prompt = prompt(length, length);
                List<Integer> oracle = HashModel.oracle(prompt, TOKENS);
                RecordingListener listener =
                        answered(
                                engine,
                                "r" + length,
                                prompt,
                                GREEDY,
                                connector.remotePrefill(prompt, GREEDY, oracle.getFirst()));
                requests++;

                assertThat(listener.tokens()).as("prompt of %d tokens", length).isEqualTo(oracle);
                assertThat(listener.finished().usage().completionTokens()).isEqualTo(TOKENS);
                assertThat(engine.model().chunkSizes())
                        .as("a step for each further token")
                        .hasSize(requests * (TOKENS - 1))
                        .containsOnly(1);
                EngineStatistics statistics = engine.engine.statistics();
                assertThat(statistics.remoteFirstTokens()).isEqualTo(requests);
                assertThat(statistics.generatedTokens()).isEqualTo((long) requests * TOKENS);
                assertThat(statistics.computedPromptTokens()).isZero();
            }
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void isFollowedByWhatAnEngineAloneDraws() {
        connector.readsEndAtOnce = true;
        try (EngineHarness engine = engine()) {
            for (int seed = 0; seed < 10; seed++) {
                int drawn = seed;
                SamplingParameters sampling = Settings.with(s -> s.seed = drawn);
                List<Integer> alone = alone(PROMPT, sampling);
                RecordingListener listener =
                        answered(
                                engine,
                                "r" + seed,
                                PROMPT,
                                sampling,
                                connector.remotePrefill(PROMPT, sampling, alone.getFirst()));

                assertThat(listener.tokens()).as("seed %d", seed).isEqualTo(alone);
                assertThat(taken(engine)).isEqualTo(seed + 1);
            }
        }
    }

    @Test
    void endsTheOutputWhereItWouldAlone() {
        connector.readsEndAtOnce = true;
        List<SamplingParameters> endings =
                List.of(
                        SamplingParameters.greedy(1),
                        Samplings.until(TOKENS, FIRST),
                        Samplings.until(TOKENS, FIRST + " "));
        try (EngineHarness engine = engine();
                EngineHarness other = new EngineHarness(EngineHarness.roomy(), null).opened()) {
            List<EngineStatistics> atEnd = new ArrayList<>();
            for (SamplingParameters ending : endings) {
                RecordingListener alone = answered(other, "alone", PROMPT, ending, null);
                RecordingListener listener = new RecordingListener();
                engine.engine.submit(
                        new GenerationRequest(
                                "r",
                                PROMPT,
                                ending,
                                connector.remotePrefill(PROMPT, GREEDY, FIRST)),
                        event -> {
                            if (event instanceof GenerationEvent.Finished) {
                                atEnd.add(engine.engine.statistics());
                            }
                            listener.onEvent(event);
                        });
                engine.settle();

                assertThat(listener.tokens()).containsExactly(FIRST);
                assertThat(listener.text()).isEqualTo(alone.text());
                assertThat(listener.reason()).isEqualTo(alone.reason());
                assertThat(listener.finished().stopReason())
                        .isEqualTo(alone.finished().stopReason());
                assertThat(atEnd.getLast().generatedTokens()).isEqualTo(atEnd.size());
                assertThat(atEnd.getLast().remoteFirstTokens()).isEqualTo(atEnd.size());
            }
            assertThat(engine.model().chunkSizes()).isEmpty();
            assertThat(connector.finished.values()).containsOnly(PROMPT.size());
            assertThat(connector.allocations.values())
                    .as("what was read is found by the next request")
                    .element(1)
                    .isEqualTo(List.of(3 * BLOCK_TOKENS, 1));
        }
    }

    @Test
    void isNotTakenIfItWasChosenInAnotherWay() {
        List<Consumer<Settings>> differences =
                List.of(
                        s -> s.temperature = 1.4,
                        s -> s.topK = 21,
                        s -> s.topP = 0.8,
                        s -> s.minP = 0.02,
                        s -> s.seed = 8,
                        s -> s.repetition = 1.2,
                        s -> s.presence = 0.25,
                        s -> s.frequency = 0.5,
                        s -> s.minTokens = 1,
                        s -> s.logprobs = 0,
                        s -> s.rules = new TokenRules(Map.of(0, 1f), null, List.of()));
        connector.readsEndAtOnce = true;
        try (EngineHarness engine = engine()) {
            for (int i = 0; i < differences.size(); i++) {
                SamplingParameters here = Settings.with(differences.get(i));
                List<Integer> alone = alone(PROMPT, here);
                RecordingListener listener =
                        answered(
                                engine,
                                "r" + i,
                                PROMPT,
                                here,
                                connector.remotePrefill(
                                        PROMPT,
                                        Settings.with(_ -> {}),
                                        (alone.getFirst() + 1) % HashModel.VOCABULARY));

                assertThat(listener.tokens()).as("difference %d", i).isEqualTo(alone);
            }
            assertThat(taken(engine)).isZero();
        }
    }

    @Test
    void isTakenUpToTheEndOfTheVocabularyAndNotBeyond() {
        connector.readsEndAtOnce = true;
        try (EngineHarness engine = engine()) {
            for (int token : new int[] {-1, HashModel.VOCABULARY, Integer.MAX_VALUE}) {
                assertThat(answered(engine, "r" + token, token).tokens())
                        .isEqualTo(HashModel.oracle(PROMPT, TOKENS));
            }
            assertThat(taken(engine)).isZero();
            int last = HashModel.VOCABULARY - 1;
            assertThat(answered(engine, "last", last).tokens()).hasSize(TOKENS).startsWith(last);
            assertThat(taken(engine)).isEqualTo(1);
        }
    }

    private RecordingListener answered(EngineHarness engine, String id, int told) {
        KvTransferParams params = connector.remotePrefill(PROMPT, GREEDY, told);
        return answered(engine, id, PROMPT, GREEDY, params);
    }

    private String reading() {
        return connector.reads.keySet().iterator().next();
    }

    @Test
    void isNotTakenIfThePromptWasNotReadInFull() {
        try (EngineHarness engine = engine()) {
            RecordingListener failed = answered(engine, "failed", WRONG);
            connector.endRead(reading(), false);
            engine.settle();
            RecordingListener stuck = answered(engine, "stuck", WRONG);
            connector.abandonRead(reading());
            engine.settle();
            engine.made(engine.engine.resetPrefixCache());
            connector.maxExternalTokens = PROMPT.size() - 1;
            connector.readsEndAtOnce = true;
            RecordingListener part = answered(engine, "part", WRONG);

            for (RecordingListener listener : List.of(failed, stuck, part)) {
                assertThat(listener.tokens()).isEqualTo(HashModel.oracle(PROMPT, TOKENS));
            }
            assertThat(engine.engine.statistics().remotePromptTokens())
                    .isEqualTo(PROMPT.size() - 1);
            assertThat(taken(engine)).isZero();
        }
    }

    @Test
    void isNotTakenInAPause() {
        try (EngineHarness engine = engine()) {
            RecordingListener listener = answered(engine, "r", WRONG);
            engine.made(engine.engine.pause(PauseMode.KEEP, false));
            connector.endRead(reading(), true);
            engine.settle();
            assertThat(listener.tokens()).isEmpty();
            engine.made(engine.engine.resume());
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(PROMPT, TOKENS));
            assertThat(engine.engine.statistics().remotePromptTokens()).isEqualTo(PROMPT.size());
            assertThat(taken(engine)).isZero();
        }
    }

    @Test
    void isNotTakenByWhoSleptMeanwhile() {
        connector.readsEndAtOnce = true;
        try (EngineHarness engine =
                new EngineHarness(EngineHarness.holding(EngineHarness.roomy(), 8), connector)
                        .opened()) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            RecordingListener listener = answered(engine, "r", WRONG);
            engine.made(engine.engine.wake(null));
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(PROMPT, TOKENS));
            assertThat(taken(engine)).isZero();
        }
    }

    @Test
    void isToldWithHowItWasChosen() {
        try (EngineHarness engine = engine()) {
            List<SamplingParameters> all =
                    List.of(
                            SamplingParameters.greedy(1),
                            GREEDY,
                            Samplings.until(1, FIRST),
                            Settings.with(_ -> {}));
            List<String> sampling = new ArrayList<>();
            for (SamplingParameters each : all) {
                RecordingListener listener =
                        answered(
                                engine,
                                "p" + sampling.size(),
                                PROMPT,
                                each,
                                FakeConnector.remoteDecode());
                JsonNode told = handedOver(listener);
                assertThat(told.path("remote_first_token_id").asInt(-1))
                        .isEqualTo(listener.tokens().getFirst());
                sampling.add(told.path("remote_first_token_sampling").asText());
            }
            String greedy =
                    "v1 temperature=0.0 top_k=0 top_p=1.0 min_p=0.0 seed=null"
                            + " repetition_penalty=1.0 presence_penalty=0.0 frequency_penalty=0.0";
            assertThat(sampling)
                    .containsExactly(
                            greedy,
                            greedy,
                            greedy,
                            "v1 temperature=1.5 top_k=20 top_p=0.9 min_p=0.01 seed=7"
                                    + " repetition_penalty=1.3 presence_penalty=0.5"
                                    + " frequency_penalty=0.25");
        }
    }

    @Test
    void isNotToldIfItDependsOnMore() {
        List<Consumer<Settings>> more =
                List.of(
                        s -> s.minTokens = 1,
                        s -> s.logprobs = 0,
                        s -> s.rules = new TokenRules(Map.of(0, 1f), null, List.of()));
        try (EngineHarness engine = engine()) {
            for (int i = 0; i < more.size(); i++) {
                RecordingListener listener =
                        answered(
                                engine,
                                "p" + i,
                                PROMPT,
                                Settings.with(more.get(i)),
                                FakeConnector.remoteDecode());
                ObjectNode told = handedOver(listener);
                assertThat(told.has("remote_prefill_cached_tokens")).isTrue();
                assertThat(told.has("remote_first_token_id")).as("case %d", i).isFalse();
                assertThat(told.has("remote_first_token_sampling")).isFalse();
            }
        }
    }

    private static ObjectNode handedOver(RecordingListener listener) {
        KvTransferParams params = listener.finished().kvTransferParams();
        return requireNonNull(params, "held").toJson();
    }
}
