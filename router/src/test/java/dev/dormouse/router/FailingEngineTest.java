package dev.dormouse.router;

import static dev.dormouse.router.RouterHarness.answering;
import static dev.dormouse.router.RouterHarness.handingOver;
import static dev.dormouse.router.RouterHarness.json;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.router.routing.Role;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a client sees of an engine that refuses, fails, dies or is silent. */
class FailingEngineTest {
    private static final String BODY = "{\"prompt\":\"p\"}";
    private static final String REFUSAL =
            "{\"error\":{\"message\":\"too long\",\"type\":\"BadRequestError\",\"code\":400}}";

    @ParameterizedTest
    @EnumSource(Role.class)
    void clientErrorOfAnEnginePassesUnchanged(Role failing) throws Exception {
        FakeEngine.Script script =
                call -> call.json(429, REFUSAL, "Retry-After: 7", "X-Engine: yes");
        try (RouterHarness h = harness(failing, script)) {
            HttpResponse<String> response = h.complete(BODY);

            assertThat(response.statusCode()).isEqualTo(429);
            assertThat(response.body()).isEqualTo(REFUSAL);
            assertThat(response.headers().firstValue("retry-after")).contains("7");
            assertThat(response.headers().firstValue("x-engine")).contains("yes");
            assertThat(response.headers().firstValue("x-dormouse-failed-leg"))
                    .contains(failing.label());
            assertThat(h.decode.requests()).hasSize(failing == Role.DECODE ? 1 : 0);
            assertLegCounted(h, failing, "rejected");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "PREFILL,500,502,prefill_failed",
        "PREFILL,502,502,prefill_failed",
        "PREFILL,302,502,prefill_failed",
        "PREFILL,503,503,prefill_unavailable",
        "DECODE,500,502,decode_failed",
        "DECODE,503,503,decode_unavailable"
    })
    void serverErrorOfAnEngineNamesTheLegAndTheEnginesReason(
            Role failing, int engineStatus, int clientStatus, String code) throws Exception {
        FakeEngine.Script script =
                call ->
                        call.json(
                                engineStatus,
                                "{\"error\":{\"message\":\"engine is asleep\"}}",
                                "Retry-After: 3");
        try (RouterHarness h = harness(failing, script)) {
            HttpResponse<String> response = h.complete(BODY);

            JsonNode error = assertError(response, clientStatus, code, failing);
            assertThat(error.get("upstream_status").intValue()).isEqualTo(engineStatus);
            assertThat(error.get("message").asText())
                    .isEqualTo(
                            failing.label()
                                    + " engine answered "
                                    + engineStatus
                                    + ": engine is asleep");
            assertThat(response.headers().firstValue("retry-after").isPresent())
                    .isEqualTo(clientStatus == 503);
            assertLegCounted(h, failing, "failed");
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void brokenConnectionIsABadGateway(Role failing) throws Exception {
        try (RouterHarness h = harness(failing, FakeEngine.Call::reset)) {
            assertError(h.complete(BODY), 502, failing.label() + "_broken", failing);
            // A prefill engine is asked again: the connection may have been an idle one.
            int asked = failing == Role.PREFILL ? 2 : 1;
            assertLegCounted(h, asked, failing, "broken");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"<html>", "", "{\"choices\":[]} x", "{\"choices\""})
    void prefillAnswerThatIsNotJsonIsABadGateway(String answer) throws Exception {
        try (RouterHarness h = new RouterHarness(call -> call.json(200, answer), answering("{}"))) {
            assertError(h.complete(BODY), 502, "prefill_broken", Role.PREFILL);
            assertThat(h.decode.requests()).isEmpty();
            assertLegCounted(h, Role.PREFILL, "broken");
        }
    }

    @Test
    void prefillAnswerIsBounded() throws Exception {
        String answer = "{\"x\":\"" + "y".repeat(3000) + "\"}";
        try (RouterHarness h =
                new RouterHarness(
                        call -> call.json(200, answer),
                        answering("{}"),
                        c -> c.maxBodyBytes(2000))) {
            assertError(h.complete(BODY), 502, "prefill_broken", Role.PREFILL);
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void engineThatDoesNotListenIsUnavailable(Role failing) throws Exception {
        try (RouterHarness h = harness(failing, call -> call.json(200, "{}"))) {
            (failing == Role.PREFILL ? h.prefill : h.decode).close();

            HttpResponse<String> response = h.complete(BODY);
            assertError(response, 503, failing.label() + "_unreachable", failing);
            assertThat(response.headers().firstValue("retry-after")).contains("1");
            assertLegCounted(h, failing, "unreachable");
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void requestGoesToTheNextEngineIfOneCannotBeReached(Role failing) throws Exception {
        try (FakeEngine spare =
                        new FakeEngine(
                                failing == Role.PREFILL
                                        ? handingOver()
                                        : answering("{\"from\":\"spare\"}"));
                RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{\"from\":\"first\"}"),
                                config -> {
                                    if (failing == Role.PREFILL) {
                                        config.prefillEngine(spare.url());
                                    } else {
                                        config.decodeEngine(spare.url());
                                    }
                                })) {
            (failing == Role.PREFILL ? h.prefill : h.decode).close();

            for (int i = 0; i < 4; i++) {
                assertThat(h.complete(BODY).statusCode()).isEqualTo(200);
            }
            assertThat(spare.requests()).hasSize(4);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "503|{\"error\":{\"message\":\"asleep\"}}",
                "200|{\"choices\":[{\"text\":\"\",\"finish_reason\":\"abort\"}]}"
            })
    void promptGoesToTheNextPrefillEngineIfOneTakesNoneNow(String answer) throws Exception {
        int status = Integer.parseInt(answer.substring(0, 3));
        FakeEngine.Script unready = call -> call.json(status, answer.substring(4));
        try (FakeEngine spare = new FakeEngine(handingOver());
                RouterHarness h =
                        new RouterHarness(
                                unready, answering("{}"), c -> c.prefillEngine(spare.url()))) {
            for (int i = 0; i < 4; i++) {
                HttpResponse<String> response = h.complete(BODY);
                assertThat(response.statusCode()).isEqualTo(200);
                assertThat(response.headers().firstValue("x-dormouse-hand-over")).contains("yes");
            }
            assertThat(spare.requests()).hasSize(4);
            assertThat(h.prefill.requests()).isNotEmpty();
            assertThat(h.decode.requests()).hasSize(4);
            h.awaitMetric(
                    h.prefill.requests().size(),
                    "dormouse_router_leg_requests_total",
                    "engine=\"prefill-0\"",
                    "outcome=\"failed\"");
            h.awaitMetric(0, "dormouse_router_legs_in_flight");
        }
    }

    @Test
    void prefillEngineThatEndsARequestByItselfIsUnavailable() throws Exception {
        FakeEngine.Script prefill =
                call -> call.json(200, "{\"choices\":[{\"finish_reason\":\"abort\"}]}");
        try (RouterHarness h = harness(Role.PREFILL, prefill)) {
            HttpResponse<String> response = h.complete(BODY);
            assertError(response, 503, "prefill_unavailable", Role.PREFILL);
            assertThat(response.headers().firstValue("retry-after")).contains("1");
            assertThat(h.decode.requests()).isEmpty();
            assertLegCounted(h, Role.PREFILL, "failed");
            assertThat(h.metric("dormouse_router_prefill_without_handover_total")).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void silentEngineIsGivenUpAndCancelled(Role failing) throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        FakeEngine.Script script =
                call -> {
                    call.awaitClosed();
                    cancelled.countDown();
                };
        Duration limit = Duration.ofMillis(300);
        try (RouterHarness h =
                new RouterHarness(
                        failing == Role.PREFILL ? script : handingOver(),
                        failing == Role.DECODE ? script : answering("{}"),
                        c -> {
                            if (failing == Role.PREFILL) {
                                c.prefillTimeout(limit);
                            } else {
                                c.decodeTimeout(limit);
                            }
                        })) {
            assertError(h.complete(BODY), 504, failing.label() + "_timeout", failing);
            assertThat(cancelled.await(30, TimeUnit.SECONDS)).isTrue();
            assertLegCounted(h, failing, "timed_out");
        }
    }

    @Test
    void prefillThatStopsInTheMiddleOfItsAnswerIsGivenUp() throws Exception {
        FakeEngine.Script prefill =
                call -> {
                    call.head(200, "application/json", "Content-Length: 100");
                    call.raw("{");
                    call.awaitClosed();
                };
        try (RouterHarness h =
                new RouterHarness(
                        prefill, answering("{}"), c -> c.prefillTimeout(Duration.ofMillis(300)))) {
            assertError(h.complete(BODY), 504, "prefill_timeout", Role.PREFILL);
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void killedEngineIsNoticedAtOnceAndWorksAgainAfterARestart(Role failing) throws Exception {
        try (RouterHarness h = harness(failing, FakeEngine.Call::awaitClosed)) {
            FakeEngine engine = failing == Role.PREFILL ? h.prefill : h.decode;
            CompletableFuture<HttpResponse<String>> answer = new CompletableFuture<>();
            Thread.ofVirtual()
                    .start(
                            () -> {
                                try {
                                    answer.complete(h.complete(BODY));
                                } catch (Exception e) {
                                    answer.completeExceptionally(e);
                                }
                            });
            engine.awaitRequests(1);
            engine.close();

            if (failing == Role.PREFILL) {
                assertError(answer.get(30, TimeUnit.SECONDS), 503, "prefill_unreachable", failing);
            } else {
                assertError(answer.get(30, TimeUnit.SECONDS), 502, "decode_broken", failing);
            }
            FakeEngine.Script healthy =
                    failing == Role.PREFILL ? handingOver() : answering("{\"again\":1}");
            try (FakeEngine _ = new FakeEngine(engine.port(), healthy)) {
                assertThat(h.complete(BODY).statusCode()).isEqualTo(200);
            }
        }
    }

    private static RouterHarness harness(Role failing, FakeEngine.Script script) {
        return failing == Role.PREFILL
                ? new RouterHarness(script, answering("{}"))
                : new RouterHarness(handingOver(), script);
    }

    private static JsonNode assertError(
            HttpResponse<String> response, int status, String code, Role leg) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        assertThat(response.headers().firstValue("content-type")).contains("application/json");
        assertThat(response.headers().firstValue("x-dormouse-failed-leg")).contains(leg.label());
        assertThat(response.headers().firstValue("x-request-id")).isPresent();
        assertThat(response.body()).doesNotContain("127.0.0.1").doesNotContain("localhost");
        JsonNode error = json(response.body()).get("error");
        assertThat(error.get("code").asText()).isEqualTo(code);
        assertThat(error.get("type").asText()).isEqualTo("server_error");
        assertThat(error.get("leg").asText()).isEqualTo(leg.label());
        assertThat(error.get("message").asText()).startsWith(leg.label() + " engine ");
        assertThat(error.has("param")).isTrue();
        return error;
    }

    private static void assertLegCounted(RouterHarness h, Role leg, String outcome) {
        assertLegCounted(h, 1, leg, outcome);
    }

    private static void assertLegCounted(RouterHarness h, int times, Role leg, String outcome) {
        h.awaitMetric(
                times,
                "dormouse_router_leg_requests_total",
                "leg=\"" + leg.label() + "\"",
                "outcome=\"" + outcome + "\"");
        h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"" + outcome + "\"");
        h.awaitMetric(0, "dormouse_router_legs_in_flight");
    }
}
