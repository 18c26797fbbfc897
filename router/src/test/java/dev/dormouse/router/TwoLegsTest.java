package dev.dormouse.router;

import static dev.dormouse.router.RouterHarness.HAND_OVER;
import static dev.dormouse.router.RouterHarness.answering;
import static dev.dormouse.router.RouterHarness.handingOver;
import static dev.dormouse.router.RouterHarness.json;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What each leg carries, against engines on real sockets. */
class TwoLegsTest {
    private static final String ANSWER = "{\"choices\":[{\"text\":\" Paris\"}]}";

    @ParameterizedTest
    @ValueSource(strings = {"/v1/completions", "/v1/chat/completions"})
    void prefillGetsOneTokenAndDecodeGetsTheOriginalWithTheHandOver(String path) throws Exception {
        String body =
                """
                {"model":"m","prompt":"The capital","max_tokens":20,"max_completion_tokens":20,
                 "min_tokens":5,"min_completion_tokens":5,"stream":false,"stop":["x"],
                 "stream_options":{"include_usage":true},"temperature":0.80,"logprobs":3,
                 "tools":[],"tool_choice":"auto","response_format":{"type":"text"}}""";
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            HttpResponse<String> response = h.post(path, body);

            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.body()).isEqualTo(ANSWER);
            assertThat(response.headers().firstValue("content-length"))
                    .contains(String.valueOf(ANSWER.length()));
            assertThat(response.headers().firstValue("x-dormouse-hand-over")).contains("yes");
            assertThat(h.prefill.request().path()).isEqualTo(path);
            assertThat(h.prefill.request().json())
                    .isEqualTo(
                            json(
                                    """
                                    {"model":"m","prompt":"The capital","max_tokens":1,
                                     "max_completion_tokens":1,"stream":false,"temperature":0.80,
                                     "tools":[],"tool_choice":"auto",
                                     "response_format":{"type":"text"},"ignore_eos":true,
                                     "kv_transfer_params":{"do_remote_decode":true,
                                     "do_remote_prefill":false,"remote_engine_id":null,
                                     "remote_block_ids":null,"remote_host":null,
                                     "remote_port":null}}"""));
            ObjectNode expected = (ObjectNode) json(body);
            expected.set("kv_transfer_params", json(HAND_OVER));
            assertThat(h.decode.request().path()).isEqualTo(path);
            assertThat(h.decode.request().json()).isEqualTo(expected);
        }
    }

    @Test
    void healthChecksHaveConnectionsOfTheirOwn() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            for (int i = 0; i < 3; i++) {
                h.prefill.awaitChecks(2);
                h.decode.awaitChecks(2);
                h.complete("{\"prompt\":[1,2,3]}");
            }

            assertThat(h.prefill.requests()).hasSize(3);
            assertThat(h.prefill.requestsBesideChecks()).isZero();
            assertThat(h.decode.requests()).hasSize(3);
            assertThat(h.decode.requestsBesideChecks()).isZero();
        }
    }

    @Test
    void maxTokensIsAddedForPrefillOnly() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            h.complete("{\"prompt\":[1,2,3]}");

            JsonNode prefill = h.prefill.request().json();
            assertThat(prefill.get("max_tokens").intValue()).isEqualTo(1);
            assertThat(prefill.has("max_completion_tokens")).isFalse();
            assertThat(h.decode.request().json().has("max_tokens")).isFalse();
        }
    }

    @Test
    void handOverKeepsUnknownKeysAndTheDigitsOfItsNumbers() throws Exception {
        String params =
                """
                {"big":123456789012345678901234567890,"float":1.50,"tiny":1E-30,\
                "clock":98765.432109876543210,"nested":{"a":[[],[null,true]]},"é":"\\u0000ü"}""";
        try (RouterHarness h = new RouterHarness(handingOver(params), answering(ANSWER))) {
            h.complete("{\"prompt\":\"p\",\"temperature\":0.10,\"seed\":18446744073709551615}");

            assertThat(h.decode.request().body())
                    .isEqualTo(
                            "{\"prompt\":\"p\",\"temperature\":0.10,\"seed\":18446744073709551615,"
                                    + "\"kv_transfer_params\":"
                                    + params
                                    + "}");
        }
    }

    @Test
    void escapedSurrogatesArePassedAsTheyCame() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver("{}"), answering(ANSWER))) {
            h.complete("{\"prompt\":\"\\uD83D and \\uD83D\\uDE00\"}");

            assertThat(h.decode.request().body())
                    .isEqualTo("{\"prompt\":\"\\uD83D and \\uD83D\\uDE00\"}");
        }
    }

    @Test
    void clientsOwnTransferParametersReachNoEngine() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver("{}"), answering(ANSWER))) {
            h.complete("{\"prompt\":\"p\",\"kv_transfer_params\":{\"remote_host\":\"evil\"}}");

            assertThat(h.prefill.request().body()).doesNotContain("evil");
            assertThat(h.decode.request().json()).isEqualTo(json("{\"prompt\":\"p\"}"));
        }
    }

    @Test
    void theParametersOfTheLastTurnReachPrefillUnchangedIfClientsAreTrusted() throws Exception {
        String lastTurn =
                """
                {"do_remote_prefill":false,"do_remote_decode":true,"remote_block_ids":[[4,2]],\
                "remote_engine_id":"d-0","remote_request_id":"r-1","remote_host":"10.0.0.2",\
                "remote_port":5601,"remote_blocks_expiry_time":98765.432109876543210,"own":[1.50]}""";
        String body = "{\"prompt\":\"p\",\"kv_transfer_params\":" + lastTurn + "}";
        try (RouterHarness h =
                new RouterHarness(
                        handingOver(), answering(ANSWER), config -> config.forwardLastTurn(true))) {
            h.complete(body);
            JsonNode given = h.prefill.request().json().path("kv_transfer_params");
            assertThat(given).isEqualTo(json(lastTurn));
            assertThat(h.decode.request().json().path("kv_transfer_params"))
                    .as("from the prefill engine, as without a last turn")
                    .isEqualTo(json(HAND_OVER));
        }
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            h.complete(body);

            assertThat(h.prefill.request().body()).doesNotContain("10.0.0.2");
        }
    }

    @Test
    void theParametersOfAPrefillEngineAreNoLastTurnEvenOfATrustedClient() throws Exception {
        try (RouterHarness h =
                new RouterHarness(
                        handingOver(), answering(ANSWER), config -> config.forwardLastTurn(true))) {
            h.complete("{\"prompt\":\"p\",\"kv_transfer_params\":" + HAND_OVER + "}");

            assertThat(h.prefill.request().body()).doesNotContain("10.0.0.1");
        }
    }

    @Test
    void endToEndHeadersReachBothEnginesAndHopByHopHeadersDoNot() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER));
                RawClient client = h.rawClient()) {
            client.post(
                    "/v1/completions",
                    "{\"prompt\":\"p\"}",
                    "Authorization: Bearer me",
                    "X-Request-Id: abc-1",
                    "X-Custom: one",
                    "X-Custom: two",
                    "Accept: text/event-stream",
                    "Accept-Encoding: gzip",
                    "Connection: keep-alive, X-Secret-Hop",
                    "X-Secret-Hop: 1",
                    "Keep-Alive: timeout=5",
                    "TE: trailers",
                    "Proxy-Authorization: p");
            String answer = client.readUntil(ANSWER);

            assertThat(answer).containsIgnoringCase("x-request-id: abc-1\r\n");
            for (FakeEngine engine : List.of(h.prefill, h.decode)) {
                FakeEngine.Request request = engine.request();
                assertThat(request.header("authorization")).containsExactly("Bearer me");
                assertThat(request.header("x-request-id")).containsExactly("abc-1");
                assertThat(request.header("x-custom")).containsExactly("one", "two");
                assertThat(request.header("content-type")).containsExactly("application/json");
                assertThat(request.header("host")).containsExactly("127.0.0.1:" + engine.port());
                assertThat(request.headers())
                        .doesNotContainKeys(
                                "x-secret-hop",
                                "keep-alive",
                                "te",
                                "proxy-authorization",
                                "accept-encoding");
                assertThat(request.header("connection")).doesNotContain("X-Secret-Hop");
            }
            assertThat(h.prefill.request().header("accept")).containsExactly("application/json");
            assertThat(h.decode.request().header("accept")).containsExactly("text/event-stream");
        }
    }

    @Test
    void bothLegsShareAFreshRequestIdThatTheClientLearns() throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            HttpResponse<String> response = h.complete("{\"prompt\":\"p\"}");

            String id = response.headers().firstValue("x-request-id").orElseThrow();
            assertThat(UUID.fromString(id).version()).isEqualTo(4);
            assertThat(h.prefill.request().header("x-request-id")).containsExactly(id);
            assertThat(h.decode.request().header("x-request-id")).containsExactly(id);
        }
    }

    @Test
    void answerKeepsTheEnginesHeadersButNotItsHopByHopOnes() throws Exception {
        FakeEngine.Script decode =
                call ->
                        call.json(
                                200,
                                ANSWER,
                                "X-Engine: d",
                                "Set-Cookie: a=1",
                                "Set-Cookie: b=2",
                                "Keep-Alive: timeout=5",
                                "X-Request-Id: other");
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            HttpResponse<String> response =
                    h.post("/v1/completions", "{\"prompt\":\"p\"}", "x-request-id", "mine");

            assertThat(response.headers().allValues("x-engine")).containsExactly("d");
            assertThat(response.headers().allValues("set-cookie")).containsExactly("a=1", "b=2");
            assertThat(response.headers().allValues("x-request-id")).containsExactly("mine");
            assertThat(response.headers().map()).doesNotContainKey("keep-alive");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}",
                "{\"choices\":[{\"finish_reason\":\"stop\"}],\"kv_transfer_params\":null}",
                "{\"choices\":[{\"finish_reason\":\"stop\"}],\"kv_transfer_params\":{}}"
            })
    void prefillWithoutHandOverLetsDecodeComputeThePrompt(String prefillAnswer) throws Exception {
        try (RouterHarness h =
                new RouterHarness(call -> call.json(200, prefillAnswer), answering(ANSWER))) {
            HttpResponse<String> response = h.complete("{\"prompt\":\"p\",\"max_tokens\":9}");

            assertThat(response.body()).isEqualTo(ANSWER);
            assertThat(response.headers().firstValue("x-dormouse-hand-over")).contains("no");
            assertThat(h.decode.request().json())
                    .isEqualTo(json("{\"prompt\":\"p\",\"max_tokens\":9}"));
            assertThat(
                            h.metric(
                                    "dormouse_router_prefill_without_handover_total",
                                    "finish_reason=\"stop\""))
                    .isEqualTo(1);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "choices|{\"prompt\":\"p\",\"n\":3}",
                "choices|{\"prompt\":\"p\",\"best_of\":2}",
                "beam_search|{\"prompt\":\"p\",\"use_beam_search\":true}",
                "prompts|{\"prompt\":[\"a\",\"b\"]}",
                "prompts|{\"prompt\":[[1,2],[3]]}",
                "prompt_logprobs|{\"prompt\":\"p\",\"prompt_logprobs\":1}",
                "prompt_logprobs|{\"prompt\":\"p\",\"echo\":true,\"logprobs\":1}",
                "truncation|{\"prompt\":\"p\",\"truncate_prompt_tokens\":-1}"
            })
    void whatOneHandOverCannotServeGoesToDecodeAlone(String row) throws Exception {
        String reason = row.substring(0, row.indexOf('|'));
        String body = row.substring(row.indexOf('|') + 1);
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            HttpResponse<String> response = h.complete(body);

            assertThat(response.body()).isEqualTo(ANSWER);
            assertThat(response.headers().firstValue("x-dormouse-hand-over")).contains("bypassed");
            assertThat(h.prefill.requests()).isEmpty();
            assertThat(h.decode.request().body()).isEqualTo(body);
            assertThat(
                            h.metric(
                                    "dormouse_router_prefill_bypassed_total",
                                    "reason=\"" + reason + "\""))
                    .isEqualTo(1);
            assertThat(h.metric("dormouse_router_prefill_bypassed_total")).isEqualTo(1);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"prompt\":[1,2,3],\"n\":1,\"best_of\":1}",
                "{\"prompt\":[\"only one\"],\"n\":null}",
                "{\"prompt\":[[1,2,3]],\"echo\":true}",
                "{\"prompt\":\"p\",\"logprobs\":2,\"prompt_logprobs\":null}",
                "{\"prompt\":\"p\",\"truncate_prompt_tokens\":9}",
                "{\"prompt\":[]}"
            })
    void oneChoiceOfOnePromptTakesBothLegs(String body) throws Exception {
        try (RouterHarness h = new RouterHarness(handingOver(), answering(ANSWER))) {
            h.complete(body);

            assertThat(h.prefill.requests()).hasSize(1);
            assertThat(h.decode.request().json().path("kv_transfer_params"))
                    .isEqualTo(json(HAND_OVER));
        }
    }

    @Test
    void enginesOfARoleTakeTurns() throws Exception {
        try (FakeEngine secondPrefill = new FakeEngine(handingOver("{\"from\":1}"));
                FakeEngine secondDecode = new FakeEngine(answering("{\"from\":1}"));
                RouterHarness h =
                        new RouterHarness(
                                handingOver("{\"from\":0}"),
                                answering("{\"from\":0}"),
                                config ->
                                        config.prefillEngine(secondPrefill.url())
                                                .decodeEngine(secondDecode.url()))) {
            h.awaitMetric(4, "dormouse_router_engine_healthy");
            for (int i = 0; i < 6; i++) {
                h.complete("{\"prompt\":\"p\"}");
            }

            assertThat(h.prefill.requests()).hasSize(3);
            assertThat(secondPrefill.requests()).hasSize(3);
            assertThat(h.decode.requests()).hasSize(3);
            assertThat(secondDecode.requests()).hasSize(3);
        }
    }
}
