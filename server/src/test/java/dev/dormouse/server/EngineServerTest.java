package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.Failed;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The HTTP surface over a scripted engine, with the default model's real tokenizer. */
class EngineServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static ModelText text;

    private final HttpClient client = HttpClient.newHttpClient();
    private final FakeEngine engine = new FakeEngine();
    private EngineServer server;

    @BeforeAll
    static void readTokenizer() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            Tokenizer tokenizer = Tokenizer.of(file.metadata());
            text = new ModelText(tokenizer, ChatTemplate.of(file.metadata(), tokenizer));
        }
    }

    @BeforeEach
    void start() {
        server =
                EngineServer.start(
                        new ServerConfig("127.0.0.1", 0, 10_000),
                        engine,
                        text,
                        () -> Instant.ofEpochSecond(1_700_000_000),
                        System::nanoTime);
        engine.script = request -> script(request, "Hello", " world");
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private static List<GenerationEvent> script(GenerationRequest request, String... pieces) {
        List<GenerationEvent> events = new ArrayList<>();
        for (String piece : pieces) {
            int token = text.tokenizer().encode(piece, false, false)[0];
            boolean logprobs = request.sampling().logprobs() != null;
            events.add(
                    new Tokens(
                            piece,
                            List.of(token),
                            logprobs
                                    ? List.of(
                                            new TokenLogprobs(
                                                    token,
                                                    -0.5f,
                                                    List.of(new Candidate(token, -0.5f))))
                                    : List.of()));
        }
        events.add(
                new Finished(
                        FinishReason.LENGTH,
                        null,
                        new Usage(request.promptTokens().size(), pieces.length, 0),
                        null));
        return events;
    }

    private HttpResponse<String> send(String method, String path, String body, String... headers) {
        HttpRequest.Builder builder =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + path))
                        .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            builder.headers(headers);
        }
        try {
            return client.send(builder.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(method + " " + path + " was not answered", e);
        }
    }

    private JsonNode post(int status, String path, String body) {
        HttpResponse<String> response = send("POST", path, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return json(response.body());
    }

    private static JsonNode json(String text) {
        try {
            return JSON.readTree(text);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new AssertionError("not JSON: " + text, e);
        }
    }

    private static List<String> events(HttpResponse<String> response) {
        return Stream.of(response.body().split("\n\n"))
                .map(event -> event.substring("data: ".length()))
                .toList();
    }

    @Test
    void completesTextAndReportsUsage() {
        JsonNode answer =
                post(
                        200,
                        "/v1/completions",
                        "{\"prompt\":\"Once upon\",\"max_tokens\":2,\"return_token_ids\":true}");
        assertThat(answer.path("object").asText()).isEqualTo("text_completion");
        assertThat(answer.path("model").asText()).isEqualTo("fake-model");
        assertThat(answer.path("created").asLong()).isEqualTo(1_700_000_000);
        JsonNode choice = answer.path("choices").path(0);
        assertThat(choice.path("text").asText()).isEqualTo("Hello world");
        assertThat(choice.path("finish_reason").asText()).isEqualTo("length");
        assertThat(choice.path("token_ids")).hasSize(2);
        assertThat(answer.path("usage").path("total_tokens").asInt())
                .isEqualTo(engine.requests.getFirst().promptTokens().size() + 2);
        assertThat(engine.requests.getFirst().promptTokens())
                .isEqualTo(
                        Stream.of(text.tokenizer().encode("Once upon", true, true))
                                .flatMap(ids -> java.util.Arrays.stream(ids).boxed())
                                .toList());
    }

    @Test
    void takesTokenIdsAndListsOfPromptsAndSeveralChoices() {
        post(200, "/v1/completions", "{\"prompt\":[5,6,7]}");
        assertThat(engine.requests.getFirst().promptTokens()).containsExactly(5, 6, 7);
        JsonNode answer =
                post(200, "/v1/completions", "{\"prompt\":[[1,2],\"x\"],\"n\":2,\"seed\":3}");
        assertThat(answer.path("choices")).hasSize(4);
        assertThat(engine.requests.subList(1, 5))
                .extracting(r -> r.sampling().seed())
                .containsExactly(3L, 4L, 3L, 4L);
        assertThat(engine.requests).extracting(GenerationRequest::id).doesNotHaveDuplicates();
    }

    @Test
    void streamsEachPieceAndEndsWithUsageAndDone() {
        HttpResponse<String> response =
                send(
                        "POST",
                        "/v1/completions",
                        "{\"prompt\":\"x\",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
        assertThat(response.headers().firstValue("content-type").orElse(""))
                .startsWith("text/event-stream");
        List<String> events = events(response);
        assertThat(events).hasSize(5).last().isEqualTo("[DONE]");
        assertThat(events.subList(0, 2))
                .map(e -> json(e).path("choices").path(0).path("text").asText())
                .containsExactly("Hello", " world");
        assertThat(json(events.get(2)).path("choices").path(0).path("finish_reason").asText())
                .isEqualTo("length");
        assertThat(json(events.get(3)).path("usage").path("completion_tokens").asInt())
                .isEqualTo(2);
    }

    @Test
    void chatAppliesTheTemplateAndStreamsDeltas() {
        JsonNode whole =
                post(
                        200,
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}");
        assertThat(whole.path("choices").path(0).path("message").path("content").asText())
                .isEqualTo("Hello world");
        int[] prompt =
                engine.requests.getFirst().promptTokens().stream().mapToInt(i -> i).toArray();
        String rendered =
                text.chatTemplate()
                        .render(
                                List.of(new dev.dormouse.model.chat.ChatMessage("user", "Hi")),
                                true);
        assertThat(prompt).isEqualTo(text.tokenizer().encode(rendered, false, true));
        assertThat(engine.requests.getFirst().sampling().maxTokens())
                .isEqualTo(1000 - prompt.length);

        List<String> events =
                events(
                        send(
                                "POST",
                                "/v1/chat/completions",
                                "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}],\"stream\":true}"));
        assertThat(
                        json(events.getFirst())
                                .path("choices")
                                .path(0)
                                .path("delta")
                                .path("role")
                                .asText())
                .isEqualTo("assistant");
        assertThat(
                        json(events.get(1))
                                .path("choices")
                                .path(0)
                                .path("delta")
                                .path("content")
                                .asText())
                .isEqualTo("Hello");
        assertThat(engine.requests.get(1).promptTokens())
                .isEqualTo(engine.requests.get(0).promptTokens());
    }

    @Test
    void reportsLogprobsInEitherShape() {
        JsonNode text =
                post(200, "/v1/completions", "{\"prompt\":\"x\",\"logprobs\":1}")
                        .path("choices")
                        .path(0)
                        .path("logprobs");
        assertThat(text.path("tokens")).hasSize(2);
        assertThat(text.path("text_offset").path(1).asInt()).isEqualTo(5);
        JsonNode chat =
                post(
                        200,
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":true,\"top_logprobs\":1}");
        assertThat(
                        chat.path("choices")
                                .path(0)
                                .path("logprobs")
                                .path("content")
                                .path(0)
                                .path("top_logprobs"))
                .hasSize(1);
    }

    @Test
    void carriesTransferParametersUntouchedBothWays() {
        String params =
                "{\"do_remote_prefill\":true,\"remote_engine_id\":\"e\",\"unknown\":{\"a\":[1,null]}}";
        engine.script =
                request ->
                        List.of(
                                new Finished(
                                        FinishReason.LENGTH,
                                        null,
                                        new Usage(1, 1, 0),
                                        Objects.requireNonNull(request.kvTransferParams())));
        JsonNode answer =
                post(
                        200,
                        "/v1/completions",
                        "{\"prompt\":\"x\",\"kv_transfer_params\":" + params + "}");
        assertThat(answer.path("kv_transfer_params")).isEqualTo(json(params));
        KvTransferParams seen =
                Objects.requireNonNull(engine.requests.getFirst().kvTransferParams());
        assertThat(seen.toJson()).isEqualTo(json(params));
        List<String> events =
                events(
                        send(
                                "POST",
                                "/v1/completions",
                                "{\"prompt\":\"x\",\"stream\":true,\"kv_transfer_params\":"
                                        + params
                                        + "}"));
        assertThat(json(events.getFirst()).path("kv_transfer_params")).isEqualTo(json(params));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt\":\"x\"|body|not valid JSON",
                "[]|body|must be a JSON object",
                "{}|prompt|prompt is missing",
                "{\"prompt\":[]}|prompt|empty list",
                "{\"prompt\":\"\"}|prompt|at least one token",
                "{\"prompt\":[99999999]}|prompt|99999999",
                "{\"prompt\":\"x\",\"max_tokens\":0}|max_tokens|at least 1",
                "{\"prompt\":\"x\",\"temperature\":-1}|temperature|temperature is -1.0",
                "{\"prompt\":\"x\",\"temperature\":\"hot\"}|temperature|must be a number",
                "{\"prompt\":\"x\",\"top_p\":0}|top_p|top_p is 0.0",
                "{\"prompt\":\"x\",\"stop\":[\"\"]}|stop|not empty",
                "{\"prompt\":\"x\",\"stop_token_ids\":[-1]}|stop_token_ids|vocabulary",
                "{\"prompt\":\"x\",\"min_tokens\":20}|min_tokens|max_tokens",
                "{\"prompt\":\"x\",\"n\":0}|n|n is 0",
                "{\"prompt\":\"x\",\"echo\":true}|echo|not supported",
                "{\"prompt\":\"x\",\"logprobs\":21}|logprobs|between 0 and 20",
                "{\"prompt\":\"x\",\"n\":2,\"kv_transfer_params\":{}}|kv_transfer_params|one sequence",
                "{\"prompt\":\"x\",\"kv_transfer_params\":[]}|kv_transfer_params|object"
            })
    void refusesBadRequestsNamingFieldValueAndLimit(String body, String field, String message) {
        JsonNode error = post(400, "/v1/completions", body).path("error");
        assertThat(error.path("type").asText()).isEqualTo("invalid_request_error");
        assertThat(error.path("message").asText()).as(field).contains(message);
        assertThat(engine.requests).isEmpty();
    }

    @Test
    void answersEngineFailuresWithTheirStatus() {
        for (FailureKind kind : FailureKind.values()) {
            engine.script = request -> List.of(new Failed(kind, "because"));
            int status =
                    switch (kind) {
                        case INVALID_REQUEST -> 400;
                        case UNAVAILABLE -> 503;
                        case KV_TRANSFER_FAILED -> 502;
                        case INTERNAL -> 500;
                    };
            for (boolean stream : new boolean[] {false, true}) {
                HttpResponse<String> response =
                        send(
                                "POST",
                                "/v1/completions",
                                "{\"prompt\":\"x\",\"stream\":" + stream + "}");
                assertThat(response.statusCode()).isEqualTo(status);
                assertThat(json(response.body()).path("error").path("message").asText())
                        .isEqualTo("because");
                assertThat(response.headers().firstValue("retry-after").isPresent())
                        .isEqualTo(status == 503);
            }
        }
    }

    @Test
    void aFailureInMidStreamIsAnErrorEventWithoutDone() {
        engine.script =
                request ->
                        List.of(
                                new Tokens("a", List.of(1), List.of()),
                                new Failed(FailureKind.INTERNAL, "broke"));
        List<String> events =
                events(send("POST", "/v1/completions", "{\"prompt\":\"x\",\"stream\":true}"));
        assertThat(events).hasSize(2);
        assertThat(json(events.get(1)).path("error").path("message").asText()).isEqualTo("broke");
    }

    @Test
    void anotherModelsNameIsNotFound() {
        assertThat(
                        post(404, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"gpt\"}")
                                .path("error")
                                .path("code")
                                .asText())
                .isEqualTo("model_not_found");
        post(200, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"fake-model\"}");
    }

    @Test
    void returnsTheClientsRequestIdAndRefusesAnUnsafeOne() {
        HttpResponse<String> response =
                send("POST", "/v1/completions", "{\"prompt\":\"x\"}", "X-Request-Id", "abc-1");
        assertThat(response.headers().firstValue("x-request-id")).contains("abc-1");
        assertThat(json(response.body()).path("id").asText()).isEqualTo("cmpl-abc-1");
        HttpResponse<String> odd =
                send("POST", "/v1/completions", "{\"prompt\":\"x\"}", "X-Request-Id", "a b");
        assertThat(odd.headers().firstValue("x-request-id").orElse("")).hasSize(36);
    }

    @Test
    void unknownPathsAndLargeBodiesAreErrorsInTheSameShape() {
        assertThat(json(send("GET", "/v2", "").body()).path("error").path("code").asText())
                .isEqualTo("not_found");
        HttpResponse<String> large =
                send("POST", "/v1/completions", "{\"prompt\":\"" + "x".repeat(20_000) + "\"}");
        assertThat(large.statusCode()).isEqualTo(413);
    }

    @Test
    void controlTakesParametersFromQueryOrBody() {
        post(200, "/sleep", "");
        post(200, "/sleep?level=2&mode=wait", "");
        JsonNode report = post(200, "/sleep", "{\"level\":0,\"mode\":\"keep\"}");
        post(200, "/sleep?level=1", "{\"level\":\"1\"}");
        post(200, "/wake_up", "");
        post(200, "/wake_up?tags=weights&tags=kv_cache", "");
        post(200, "/wake_up?tags=weights,kv_cache", "");
        post(200, "/wake_up", "{\"tags\":[\"kv_cache\"]}");
        post(200, "/release_kv_cache_memory", "");
        post(200, "/pause?mode=wait&clear_cache=false", "");
        post(200, "/resume", "");
        post(200, "/reset_prefix_cache", "");
        assertThat(engine.transitions)
                .containsExactly(
                        "sleep 1 ABORT",
                        "sleep 2 WAIT",
                        "sleep 0 KEEP",
                        "sleep 1 ABORT",
                        "wake null",
                        "wake [WEIGHTS, KV_CACHE]",
                        "wake [WEIGHTS, KV_CACHE]",
                        "wake [KV_CACHE]",
                        "release",
                        "pause WAIT false",
                        "resume",
                        "reset");
        assertThat(report.path("status").asText()).isEqualTo("sleeping");
        assertThat(report.path("level").asInt()).isZero();
        assertThat(report.path("bytes_released").asLong()).isEqualTo(4096);
        assertThat(report.path("seconds").path("unmap").asDouble()).isEqualTo(0.5);
    }

    @ParameterizedTest
    @CsvSource({
        "/sleep?level=3, level is `3`",
        "/sleep?level=-1, level is `-1`",
        "/sleep?level=abc, level is `abc`",
        "/sleep?level=1&level=2, level has 2 values",
        "/sleep?mode=hard, mode is `hard`",
        "/wake_up?tags=, tags has ``",
        "/wake_up?tags=brain, tags has `brain`",
        "/pause?clear_cache=maybe, clear_cache is `maybe`"
    })
    void controlRefusesBadParametersAndChangesNothing(String path, String message) {
        assertThat(post(400, path, "").path("error").path("message").asText()).contains(message);
        assertThat(engine.transitions).isEmpty();
    }

    @Test
    void aParameterThatDiffersBetweenQueryAndBodyIsRefused() {
        assertThat(
                        post(400, "/sleep?level=1", "{\"level\":2}")
                                .path("error")
                                .path("message")
                                .asText())
                .contains("[1] in the query but [2] in the body");
        assertThat(engine.transitions).isEmpty();
    }

    @Test
    void refusedTransitionsHaveTheirStatus() {
        for (Reason reason : Reason.values()) {
            engine.refusal = new TransitionRefusedException(reason, "no");
            int status =
                    switch (reason) {
                        case INVALID -> 400;
                        case CONFLICT -> 409;
                        case UNAVAILABLE -> 503;
                    };
            assertThat(post(status, "/sleep", "").path("error").path("message").asText())
                    .isEqualTo("no");
        }
    }

    @Test
    void aSleepingEngineIsAliveButNotReady() {
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(send("GET", "/ready", "").statusCode()).isEqualTo(200);
        engine.state =
                new EngineState(
                        Phase.ASLEEP, 1, Set.of(dev.dormouse.engine.WakeTag.KV_CACHE), true);
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(send("GET", "/ready", "").statusCode()).isEqualTo(503);
        assertThat(json(send("GET", "/is_sleeping", "").body()).path("is_sleeping").asBoolean())
                .isTrue();
        engine.state = new EngineState(Phase.FAILED, 0, Set.of(), true);
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(503);
    }

    @Test
    void metricsHaveVllmsNamesAndEverySeriesFromTheStart() {
        engine.samples =
                List.of(
                        new dev.dormouse.connector.TransferStatistics.TransferSample(
                                0.02, 0.001, 1 << 20, 12));
        post(200, "/v1/completions", "{\"prompt\":\"x\"}");
        String metrics = send("GET", "/metrics", "").body();
        String labels = "{engine=\"0\",model_name=\"fake-model\"} ";
        assertThat(metrics)
                .contains("vllm:nixl_xfer_time_seconds_count" + labels + "1")
                .contains("vllm:nixl_num_failed_transfers_total" + labels + "6.0")
                .contains("vllm:nixl_num_failed_notifications_total" + labels + "3.0")
                .contains("vllm:nixl_num_kv_expired_reqs_total" + labels + "6.0")
                .contains("dormouse:nixl_handshakes_total" + labels + "4.0")
                .contains("dormouse:prompt_tokens_computed_total" + labels + "60.0")
                .contains("vllm:num_requests_running" + labels + "1.0")
                .contains("vllm:time_to_first_token_seconds_count" + labels + "1")
                .contains(
                        "vllm:engine_sleep_state{engine=\"0\",model_name=\"fake-model\",sleep_state=\"awake\"} 1.0")
                .contains(
                        "vllm:sleep_mode_operation_duration_seconds_count{engine=\"0\",model_name=\"fake-model\",operation=\"sleep\"} 1")
                .contains(
                        "vllm:sleep_mode_operation_duration_seconds_count{engine=\"0\",model_name=\"fake-model\",operation=\"wake\"} 0");
    }

    @Test
    void tokenizesAndBack() {
        JsonNode tokens = post(200, "/tokenize", "{\"prompt\":\"Once upon a time\"}");
        assertThat(tokens.path("count").asInt()).isEqualTo(tokens.path("tokens").size());
        JsonNode back = post(200, "/detokenize", "{\"tokens\":" + tokens.path("tokens") + "}");
        assertThat(back.path("prompt").asText()).isEqualTo("Once upon a time");
    }

    @Test
    void aPortInUseIsAnErrorThatNamesIt() {
        ServerConfig taken = new ServerConfig("127.0.0.1", server.port(), 1000);
        assertThatThrownBy(
                        () ->
                                EngineServer.start(
                                        taken, engine, text, Instant::now, System::nanoTime))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(Integer.toString(server.port()))
                .hasMessageContaining("--port");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClientThatLeavesEndsItsRequestEvenIfNothingIsComputed(boolean stream) throws Exception {
        engine.script = request -> List.of();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            sendCompletion(socket, "{\"prompt\":\"x\",\"stream\":" + stream + "}");
            Await.until("the request", () -> !engine.requests.isEmpty());
            assertThat(engine.aborted).isEmpty();
        }
        Await.until("the abort", () -> !engine.aborted.isEmpty());
        assertThat(engine.aborted).containsExactly(engine.requests.getFirst().id());
    }

    @Test
    void aClientThatLeavesInMidStreamEndsItsRequest() throws Exception {
        engine.script = request -> List.of(new Tokens("a", List.of(1), List.of()));
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            sendCompletion(socket, "{\"prompt\":\"x\",\"stream\":true}");
            assertThat(socket.getInputStream().read()).isEqualTo('H');
        }
        Await.until("the abort", () -> !engine.aborted.isEmpty());
        assertThat(engine.aborted).containsExactly(engine.requests.getFirst().id());
    }

    @Test
    void aConnectionThatShallCloseEndsAfterItsAnswer() throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream()
                    .write(
                            "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                                    .getBytes(StandardCharsets.US_ASCII));
            assertThat(
                            new String(
                                    socket.getInputStream().readAllBytes(),
                                    StandardCharsets.US_ASCII))
                    .startsWith("HTTP/1.1 200 ");
        }
    }

    @Test
    void aRefusedRequestsPromptIsDeclinedSoThatItsHolderLetsItGo() {
        String params =
                "\"kv_transfer_params\":{\"do_remote_prefill\":true,\"remote_request_id\":\"p\"}";
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"temperature\":-1," + params + "}");
        post(404, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"other\"," + params + "}");
        post(400, "/v1/chat/completions", "{\"messages\":3," + params + "}");
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"n\":2," + params + "}");
        assertThat(engine.declined)
                .hasSize(4)
                .allSatisfy(declined -> assertThat(declined.remotePrefill()).isTrue());
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"temperature\":-1}");
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"kv_transfer_params\":3}");
        post(200, "/v1/completions", "{\"prompt\":\"x\"," + params + "}");
        assertThat(engine.declined).hasSize(4);
        assertThat(engine.requests).hasSize(1);
    }

    private static void sendCompletion(Socket socket, String body) throws IOException {
        String head =
                "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "
                        + body.length()
                        + "\r\n\r\n";
        socket.getOutputStream().write((head + body).getBytes(StandardCharsets.US_ASCII));
    }
}
