package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.Failed;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.StopReason;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The HTTP surface over a scripted engine, with the default model's real tokenizer. */
class EngineServerTest extends ServerFixture {
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
    void aPromptCountsOnceHoweverManyChoicesItHas() {
        for (boolean stream : new boolean[] {false, true}) {
            HttpResponse<String> response =
                    send(
                            "POST",
                            "/v1/completions",
                            "{\"prompt\":[[1,2,3],[4]],\"n\":2"
                                    + (stream
                                            ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
                                            : "}"));
            List<String> events = stream ? events(response) : List.of(response.body());
            JsonNode usage = json(events.get(stream ? events.size() - 2 : 0)).path("usage");
            assertThat(usage.path("prompt_tokens").asInt()).isEqualTo(4);
            assertThat(usage.path("completion_tokens").asInt()).isEqualTo(8);
            assertThat(usage.path("total_tokens").asInt()).isEqualTo(12);
            assertThat(usage.path("prompt_tokens_details").path("cached_tokens").asInt())
                    .isEqualTo(4);
        }
    }

    @Test
    void theStopReasonIsTheStopStringOrTheStopTokensNumber() {
        assertThat(stopReason(null).isNull()).isTrue();
        assertThat(stopReason(new StopReason.Token(7))).isEqualTo(json("7"));
        assertThat(stopReason(new StopReason.Text("7"))).isEqualTo(json("\"7\""));
    }

    private JsonNode stopReason(@Nullable StopReason reason) {
        engine.script =
                request ->
                        List.of(new Finished(FinishReason.STOP, reason, new Usage(1, 1, 0), null));
        JsonNode whole = post(200, "/v1/completions", "{\"prompt\":\"x\"}");
        List<String> events =
                events(send("POST", "/v1/completions", "{\"prompt\":\"x\",\"stream\":true}"));
        JsonNode streamed = json(events.getFirst()).path("choices").path(0).path("stop_reason");
        assertThat(streamed).isEqualTo(whole.path("choices").path(0).path("stop_reason"));
        return streamed;
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
        String params = READ.replace("}", ",\"unknown\":{\"a\":[1,null]}}");
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

    @Test
    void answersEngineFailuresWithTheirStatus() {
        for (FailureKind kind : FailureKind.values()) {
            engine.script = request -> List.of(new Failed(kind, "because"));
            int status =
                    switch (kind) {
                        case INVALID_REQUEST -> 400;
                        case PAUSED, UNAVAILABLE -> 503;
                        case KV_TRANSFER_FAILED -> 502;
                        case INTERNAL -> 500;
                    };
            String code =
                    switch (kind) {
                        case INVALID_REQUEST -> "invalid_value";
                        case PAUSED -> "engine_paused";
                        case UNAVAILABLE -> "engine_unavailable";
                        case KV_TRANSFER_FAILED -> "kv_transfer_failed";
                        case INTERNAL -> "internal_error";
                    };
            for (boolean stream : new boolean[] {false, true}) {
                HttpResponse<String> response =
                        send(
                                "POST",
                                "/v1/completions",
                                "{\"prompt\":\"x\",\"stream\":" + stream + "}");
                assertThat(response.statusCode()).isEqualTo(status);
                JsonNode error = json(response.body()).path("error");
                assertThat(error.path("message").asText()).isEqualTo("because");
                assertThat(error.path("code").asText()).isEqualTo(code);
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
    void returnsTheClientsRequestIdAndRefusesAnUnsafeOne() {
        HttpResponse<String> response =
                send("POST", "/v1/completions", "{\"prompt\":\"x\"}", "X-Request-Id", "abc-1");
        assertThat(response.headers().firstValue("x-request-id")).contains("abc-1");
        assertThat(json(response.body()).path("id").asText()).isEqualTo("cmpl-abc-1");
        HttpResponse<String> odd =
                send("POST", "/v1/completions", "{\"prompt\":\"x\"}", "X-Request-Id", "a b");
        assertThat(odd.headers().firstValue("x-request-id").orElse("")).hasSize(36);
    }

    /** vLLM's push connector compares what is before the engine's random suffix. */
    @Test
    void enginesCallASequenceAsVllmDoes() {
        for (int i = 0; i < 2; i++) {
            send("POST", "/v1/completions", "{\"prompt\":\"x\"}", "X-Request-Id", "a:b/1");
            send(
                    "POST",
                    "/v1/chat/completions",
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
                    "X-Request-Id",
                    "a:b/1");
        }
        assertThat(engine.requests)
                .extracting(GenerationRequest::sharedId)
                .containsExactly(
                        "cmpl-a:b/1-0", "chatcmpl-a:b/1", "cmpl-a:b/1-0", "chatcmpl-a:b/1");
        assertThat(engine.requests).extracting(GenerationRequest::id).doesNotHaveDuplicates();
    }

    @Test
    void unknownPathsAreErrorsInTheSameShape() {
        assertThat(json(send("GET", "/v2", "").body()).path("error").path("code").asText())
                .isEqualTo("not_found");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "POST /v1/completions HTTP/1.1,Host: x,Content-Length: 20000|413|body_too_large",
                "GET nowhere HTTP/1.1,Host x|400|bad_request"
            })
    void whatTheHttpServerRefusesByItselfIsAnErrorInTheSameShape(
            String lines, int status, String code) throws Exception {
        try (java.net.Socket socket =
                new java.net.Socket(java.net.InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream()
                    .write(
                            (lines.replace(",", "\r\n") + "\r\n\r\n")
                                    .getBytes(StandardCharsets.US_ASCII));
            StringBuilder answer = new StringBuilder();
            while (answer.indexOf("\"}}") < 0) {
                int next = socket.getInputStream().read();
                assertThat(next).as("%s", answer).isNotNegative();
                answer.append((char) next);
            }
            assertThat(answer.toString()).startsWith("HTTP/1.1 " + status + " ");
            JsonNode error = json(answer.substring(answer.indexOf("\r\n\r\n") + 4)).path("error");
            assertThat(error.path("code").asText()).isEqualTo(code);
            assertThat(error.path("type").asText()).isEqualTo("invalid_request_error");
            assertThat(error.path("message").asText()).isNotEmpty();
            assertThat(error.path("param").isNull()).isTrue();
        }
    }

    @Test
    void requestsBeyondTheLimitAreRefusedUntilOneEnds() {
        engine.script = request -> List.of();
        try (EngineServer one = serve(1, ServedLegs.BOTH)) {
            EngineServer other = server;
            server = one;
            try {
                java.util.concurrent.CompletableFuture<JsonNode> first =
                        java.util.concurrent.CompletableFuture.supplyAsync(
                                () -> post(200, "/v1/completions", "{\"prompt\":\"x\"}"));
                dev.dormouse.testkit.Await.until("a request", () -> !engine.listeners.isEmpty());
                HttpResponse<String> second =
                        send("POST", "/v1/chat/completions", "{\"messages\":[]}");
                assertThat(second.statusCode()).isEqualTo(503);
                assertThat(json(second.body()).path("error").path("code").asText())
                        .isEqualTo("engine_busy");
                assertThat(second.headers().firstValue("retry-after")).contains("1");
                script(engine.requests.getFirst(), "a")
                        .forEach(engine.listeners.getFirst()::onEvent);
                first.join();
                // An answer may be read before the server has noticed that it is out.
                dev.dormouse.testkit.Await.until(
                        "its place is free",
                        () ->
                                json(send("GET", "/load", "").body()).path("server_load").asInt()
                                        == 0);
                post(400, "/v1/completions", "{}");
                post(400, "/v1/completions", "{}");
            } finally {
                server = other;
            }
        }
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
        ServerConfig taken =
                new ServerConfig(
                        "127.0.0.1",
                        server.port(),
                        1000,
                        1,
                        ServedLegs.BOTH,
                        false,
                        ADMIN,
                        List.of(),
                        "1");
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
        String params = "\"kv_transfer_params\":" + READ;
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"temperature\":-1," + params + "}");
        post(404, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"other\"," + params + "}");
        post(400, "/v1/chat/completions", "{\"messages\":3," + params + "}");
        post(400, "/v1/completions", "{\"prompt\":[\"x\",\"y\"]," + params + "}");
        assertThat(engine.declined)
                .hasSize(4)
                .allSatisfy(declined -> assertThat(declined.remotePrefill()).isTrue());
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"temperature\":-1}");
        post(400, "/v1/completions", "{\"prompt\":\"x\",\"kv_transfer_params\":3}");
        String wrong = params.replace("\"remote_port\":5600", "\"remote_port\":0");
        assertThat(wrong).isNotEqualTo(params);
        post(400, "/v1/completions", "{\"prompt\":\"x\"," + wrong + "}");
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
