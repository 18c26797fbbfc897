package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.StopReason;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What each field of a request asks of the engine, and how the answer shows it. */
class FieldsTest extends ServerFixture {
    /** A field with what it must make of the sampling parameters. */
    record Field(String json, Function<SamplingParameters, @Nullable Object> of, Object expected) {
        @Override
        public String toString() {
            return json;
        }
    }

    @SuppressWarnings("UnusedVariable") // by name
    private static final List<Field> SAMPLING =
            List.of(
                    new Field("\"temperature\":0.5", SamplingParameters::temperature, 0.5),
                    new Field("\"top_k\":7", SamplingParameters::topK, 7),
                    new Field("\"top_k\":7.0", SamplingParameters::topK, 7),
                    new Field("\"top_p\":0.25", SamplingParameters::topP, 0.25),
                    new Field("\"min_p\":0.125", SamplingParameters::minP, 0.125),
                    new Field("\"seed\":-9", SamplingParameters::seed, -9L),
                    new Field(
                            "\"repetition_penalty\":1.5",
                            SamplingParameters::repetitionPenalty,
                            1.5),
                    new Field("\"presence_penalty\":-1", SamplingParameters::presencePenalty, -1.0),
                    new Field("\"frequency_penalty\":2", SamplingParameters::frequencyPenalty, 2.0),
                    new Field("\"max_tokens\":9", SamplingParameters::maxTokens, 9),
                    new Field("\"min_tokens\":3", SamplingParameters::minTokens, 3),
                    new Field("\"stop\":\"a\"", SamplingParameters::stop, List.of("a")),
                    new Field(
                            "\"stop\":[\"a\",\"b\"]", SamplingParameters::stop, List.of("a", "b")),
                    new Field(
                            "\"stop_token_ids\":[4,5]",
                            SamplingParameters::stopTokenIds,
                            Set.of(4, 5)),
                    new Field(
                            "\"include_stop_str_in_output\":true",
                            SamplingParameters::includeStop,
                            true),
                    new Field("\"ignore_eos\":true", SamplingParameters::ignoreEos, true),
                    new Field(
                            "\"skip_special_tokens\":false",
                            SamplingParameters::skipSpecialTokens,
                            false),
                    new Field("\"prompt_logprobs\":2", SamplingParameters::promptLogprobs, 2),
                    new Field(
                            "\"allowed_token_ids\":[1,2]",
                            p -> p.tokenRules().allowed(),
                            Set.of(1, 2)),
                    new Field(
                            "\"logit_bias\":{\"5\":-200,\"6\":1.5}",
                            p -> p.tokenRules().bias(),
                            Map.of(5, -100f, 6, 1.5f)),
                    new Field(
                            "\"user\":\"u\",\"metadata\":{},\"store\":true",
                            p -> p.stop(),
                            List.of()),
                    new Field("\"priority\":0,\"service_tier\":\"auto\"", p -> p.topK(), 0));

    @ParameterizedTest
    @FieldSource("SAMPLING")
    void samplingFieldsReachTheEngineFromBothEndpoints(Field field) {
        post(200, "/v1/completions", "{\"prompt\":\"x\"," + field.json() + "}");
        post(200, "/v1/chat/completions", chat("\"x\"", field.json()));
        assertThat(engine.requests).hasSize(2);
        assertThat(engine.requests)
                .allSatisfy(
                        request ->
                                assertThat(field.of().apply(request.sampling()))
                                        .isEqualTo(field.expected()));
    }

    @Test
    void prioritiesReachAnEngineThatServesByThem() {
        takesPriorities = true;
        server.close();
        server = serve(10, ServedLegs.BOTH);
        post(200, "/v1/completions", "{\"prompt\":\"x\",\"priority\":-3,\"n\":2}");
        post(200, "/v1/chat/completions", chat("\"x\"", "\"priority\":7"));
        post(200, "/v1/completions", "{\"prompt\":\"x\"}");
        assertThat(engine.requests)
                .extracting(GenerationRequest::priority)
                .containsExactlyInAnyOrder(-3, -3, 7, 0);
    }

    private static String chat(String content, String more) {
        return "{\"messages\":[{\"role\":\"user\",\"content\":" + content + "}]," + more + "}";
    }

    @Test
    void badWordsAreBannedAtTheBeginningAndBehindASpace() {
        post(
                200,
                "/v1/completions",
                "{\"prompt\":\"x\",\"bad_words\":[\" world\",\"tree house\"]}");
        List<List<Integer>> banned = engine.requests.getFirst().sampling().tokenRules().banned();
        assertThat(banned)
                .startsWith(ids("world"), ids(" world"))
                .contains(ids("tree house"), ids(" tree house"));
    }

    private static List<Integer> ids(String words) {
        return Stream.of(text.tokenizer().encode(words, false, true))
                .flatMap(tokens -> java.util.Arrays.stream(tokens).boxed())
                .toList();
    }

    @Test
    void maxCompletionTokensOutranksMaxTokensInChatsOnly() {
        post(
                200,
                "/v1/chat/completions",
                chat("\"x\"", "\"max_completion_tokens\":5,\"max_tokens\":7"));
        post(
                200,
                "/v1/completions",
                "{\"prompt\":\"x\",\"max_completion_tokens\":5,\"max_tokens\":7}");
        assertThat(engine.requests)
                .extracting(request -> request.sampling().maxTokens())
                .containsExactly(5, 7);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"truncate_prompt_tokens\":2|6,7",
                "\"truncate_prompt_tokens\":2,\"truncation_side\":\"left\"|6,7",
                "\"truncate_prompt_tokens\":2,\"truncation_side\":\"right\"|5,6",
                "\"truncate_prompt_tokens\":9|5,6,7",
                "\"truncate_prompt_tokens\":-1|5,6,7",
                "\"truncate_prompt_tokens\":-1,\"max_tokens\":998|6,7",
                "\"n\":1|5,6,7"
            })
    void longPromptsAreCutAsAsked(String more, String kept) {
        post(200, "/v1/completions", "{\"prompt\":[5,6,7]," + more + "}");
        assertThat(engine.requests.getFirst().promptTokens())
                .map(String::valueOf)
                .containsExactly(kept.split(","));
    }

    @Test
    void aCutPromptMayBeLongerThanTheModelsLengthAndItsEchoIsWhatIsLeft() {
        String prompt = "{\"prompt\":[" + "5,".repeat(1500) + "6],\"truncate_prompt_tokens\":2";
        JsonNode answer = post(200, "/v1/completions", prompt + ",\"echo\":true}");
        assertThat(engine.requests.getFirst().promptTokens()).containsExactly(5, 6);
        assertThat(answer.path("choices").path(0).path("text").asText())
                .isEqualTo(decoded(5, 6) + "Hello world");
    }

    private static String decoded(int... tokens) {
        return text.tokenizer().decode(tokens);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void echoPutsThePromptBeforeEachChoice(boolean stream) {
        JsonNode answer = complete("\"prompt\":[\"Once\",[300,301]],\"n\":2,\"echo\":true", stream);
        assertThat(answer.path("choices"))
                .map(choice -> choice.path("text").asText())
                .containsExactly(
                        "OnceHello world",
                        "OnceHello world",
                        decoded(300, 301) + "Hello world",
                        decoded(300, 301) + "Hello world");
        assertThat(engine.requests).allMatch(r -> r.sampling().promptLogprobs() == null);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void echoedLogprobsBeginWithThoseOfThePrompt(boolean stream) {
        JsonNode choice =
                complete("\"prompt\":[300,301,302],\"echo\":true,\"logprobs\":1", stream)
                        .path("choices")
                        .path(0);
        JsonNode logprobs = choice.path("logprobs");
        assertThat(engine.requests.getFirst().sampling().promptLogprobs()).isEqualTo(1);
        assertThat(logprobs.path("tokens"))
                .map(JsonNode::asText)
                .containsExactly(decoded(300), decoded(301), decoded(302), "Hello", " world");
        assertThat(logprobs.path("token_logprobs").toString())
                .isEqualTo("[null,-1.0,-2.0,-0.5,-0.5]");
        assertThat(logprobs.path("top_logprobs").path(0).isNull()).isTrue();
        assertThat(logprobs.path("top_logprobs").path(1).toString())
                .isEqualTo(json("{" + quoted(301) + ":-1.0}").toString());
        // The chosen token stands beside the likely ones.
        assertThat(logprobs.path("top_logprobs").path(2).path(decoded(302)).asDouble())
                .isEqualTo(-2);
        assertThat(logprobs.path("top_logprobs").path(2)).hasSize(2);
        int length = decoded(300, 301, 302).length();
        assertThat(logprobs.path("text_offset").path(3).asInt()).isEqualTo(length);
        assertThat(logprobs.path("text_offset").path(4).asInt()).isEqualTo(length + 5);
        assertThat(choice.has("prompt_logprobs")).isFalse();
    }

    private static String quoted(int token) {
        return com.fasterxml.jackson.databind.node.TextNode.valueOf(decoded(token)).toString();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anEchoOfNoTokensIsThePromptAlone(boolean stream) {
        engine.script =
                request ->
                        List.of(
                                new Tokens("x", List.of(5), List.of()),
                                new Finished(
                                        FinishReason.STOP,
                                        new StopReason.Token(5),
                                        new Usage(3, 1, 0),
                                        null));
        JsonNode answer =
                complete(
                        "\"prompt\":[300,301,302],\"echo\":true,\"max_tokens\":0,\"return_token_ids\":true",
                        stream);
        JsonNode choice = answer.path("choices").path(0);
        assertThat(choice.path("text").asText()).isEqualTo(decoded(300, 301, 302));
        assertThat(choice.path("finish_reason").asText()).isEqualTo("length");
        assertThat(choice.path("stop_reason").isNull()).isTrue();
        assertThat(choice.path("token_ids")).isEmpty();
        assertThat(answer.path("usage").path("completion_tokens").asInt()).isZero();
        assertThat(answer.path("usage").path("total_tokens").asInt()).isEqualTo(3);
        assertThat(engine.requests.getFirst().sampling().maxTokens()).isEqualTo(1);
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"max_tokens\":0}");
    }

    /** An answer, gathered from its events if it is streamed. */
    private JsonNode complete(String fields, boolean stream) {
        if (!stream) {
            return post(200, "/v1/completions", "{" + fields + "}");
        }
        HttpResponse<String> response =
                send(
                        "POST",
                        "/v1/completions",
                        "{"
                                + fields
                                + ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return Gathered.completion(
                events(response).stream()
                        .filter(event -> !event.equals("[DONE]"))
                        .map(ServerFixture::json)
                        .toList());
    }

    @Test
    void promptLogprobsStandInEachChoiceOrBesideThoseOfAChat() {
        JsonNode text =
                post(200, "/v1/completions", "{\"prompt\":[300,301,302],\"prompt_logprobs\":1}")
                        .path("choices")
                        .path(0);
        JsonNode list = text.path("prompt_logprobs");
        assertThat(list).hasSize(3);
        assertThat(list.path(0).isNull()).isTrue();
        assertThat(list.path(1).toString())
                .isEqualTo(
                        json("{\"301\":{\"logprob\":-1.0,\"rank\":1,\"decoded_token\":"
                                        + quoted(301)
                                        + "}}")
                                .toString());
        assertThat(list.path(2).path("302").path("rank").asInt()).isEqualTo(2);
        assertThat(list.path(2).path("40001").path("rank").asInt()).isEqualTo(1);
        assertThat(text.path("logprobs").isNull()).isTrue();
        JsonNode chat = post(200, "/v1/chat/completions", chat("\"x\"", "\"prompt_logprobs\":0"));
        assertThat(chat.path("prompt_logprobs"))
                .hasSize(engine.requests.get(1).promptTokens().size());
        assertThat(chat.path("choices").path(0).has("prompt_logprobs")).isFalse();
    }

    @Test
    void tokenIdsOfThePromptAreToldOnce() {
        JsonNode whole =
                post(200, "/v1/completions", "{\"prompt\":[300,301],\"return_token_ids\":true}");
        assertThat(whole.path("choices").path(0).path("prompt_token_ids").toString())
                .isEqualTo("[300,301]");
        for (String body :
                List.of(
                        "{\"prompt\":[300,301],\"return_token_ids\":true,\"stream\":true}",
                        chat("\"x\"", "\"return_token_ids\":true,\"stream\":true"))) {
            String path = body.contains("messages") ? "/v1/chat/completions" : "/v1/completions";
            List<String> events = events(send("POST", path, body));
            assertThat(events.getFirst()).contains("\"prompt_token_ids\":[");
            assertThat(events.subList(1, events.size()))
                    .noneMatch(event -> event.contains("prompt_token_ids"));
        }
    }

    @Test
    void tokensMayBeToldByNumber() {
        JsonNode logprobs =
                post(
                                200,
                                "/v1/completions",
                                "{\"prompt\":\"x\",\"logprobs\":1,\"return_tokens_as_token_ids\":true}")
                        .path("choices")
                        .path(0)
                        .path("logprobs");
        String hello = "token_id:" + ids("Hello").getFirst();
        assertThat(logprobs.path("tokens").path(0).asText()).isEqualTo(hello);
        assertThat(logprobs.path("top_logprobs").path(0).has(hello)).isTrue();
    }

    @Test
    void continuousUsageTellsEachChoicesTokensSoFar() {
        List<String> events =
                events(
                        send(
                                "POST",
                                "/v1/completions",
                                "{\"prompt\":[1,2,3],\"stream\":true,\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}}"));
        assertThat(events.subList(0, 4))
                .map(event -> json(event).path("usage").path("completion_tokens").asInt(-1))
                .containsExactly(1, 2, 2, 2);
        assertThat(json(events.getFirst()).path("usage").path("total_tokens").asInt()).isEqualTo(4);
        List<String> quiet =
                events(
                        send(
                                "POST",
                                "/v1/completions",
                                "{\"prompt\":[1],\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true}}"));
        assertThat(quiet).noneMatch(event -> event.contains("usage"));
    }

    @Test
    void aHeldPromptIsReadOnceAndItsOtherChoicesFollow() {
        engine.script = request -> List.of();
        java.util.concurrent.CompletableFuture<JsonNode> answer =
                java.util.concurrent.CompletableFuture.supplyAsync(
                        () ->
                                post(
                                        200,
                                        "/v1/completions",
                                        "{\"prompt\":\"x\",\"n\":3,\"seed\":5,\"kv_transfer_params\":"
                                                + READ
                                                + "}"));
        dev.dormouse.testkit.Await.until("the first choice", () -> !engine.listeners.isEmpty());
        assertThat(engine.requests).hasSize(1);
        assertThat(engine.requests.getFirst().kvTransferParams()).isNotNull();
        engine.script = request -> script(request, "Hello", " world");
        script(engine.requests.getFirst(), "first").forEach(engine.listeners.getFirst()::onEvent);
        assertThat(answer.join().path("choices"))
                .map(choice -> choice.path("text").asText())
                .containsExactly("first", "Hello world", "Hello world");
        assertThat(engine.requests.subList(1, 3))
                .allMatch(request -> request.kvTransferParams() == null);
        assertThat(engine.requests)
                .extracting(request -> request.sampling().seed())
                .containsExactly(5L, 6L, 7L);
    }
}
