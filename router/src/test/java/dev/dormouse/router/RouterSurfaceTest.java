package dev.dormouse.router;

import static dev.dormouse.router.RouterHarness.answering;
import static dev.dormouse.router.RouterHarness.handingOver;
import static dev.dormouse.router.RouterHarness.json;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.testkit.Await;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Paths, methods, bodies and the operators' pages. */
class RouterSurfaceTest {
    private static final String BODY = "{\"prompt\":\"p\"}";

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/sleep",
                "/wake_up",
                "/is_sleeping",
                "/release_kv_cache_memory",
                "/pause",
                "/resume",
                "/reset_prefix_cache",
                "/tokenize",
                "/v1/completions/",
                "/v1/../sleep",
                "/v1/completions/../../sleep",
                "//sleep",
                "/"
            })
    void onlyTheListedPathsExist(String path) throws Exception {
        try (RouterHarness h = harness();
                RawClient client = h.rawClient()) {
            client.post(path, BODY);
            String answer = client.readUntil("\"code\":\"not_found\"}}");

            assertThat(answer).startsWith("HTTP/1.1 404 ");
            assertThat(h.prefill.requests()).isEmpty();
            assertThat(h.decode.requests()).isEmpty();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "/v1/models/smol,/v1/models/smol",
        "/v1/models/org%2Fname,/v1/models/org%2Fname",
        "/v1/models/org/name,/v1/models/org%2Fname",
        "/v1/models/a%20b+c,/v1/models/a%20b%2Bc",
        "/v1/models/a%2F..%2F..%2Fsleep,/v1/models/a%2F%2E%2E%2F%2E%2E%2Fsleep"
    })
    void aModelsNameIsOneSegmentOnItsWay(String asked, String forwarded) throws Exception {
        try (RouterHarness h = harness()) {
            assertThat(h.request("GET", asked).statusCode()).isEqualTo(200);
            assertThat(h.decode.request().path()).isEqualTo(forwarded);
        }
    }

    @Test
    void aBodyOfAnotherTypeIsRefusedBeforeAnyEngine() throws Exception {
        try (RouterHarness h = harness();
                RawClient client = h.rawClient()) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
                            + "Content-Length: 14\r\n\r\n"
                            + BODY);
            assertThat(client.readUntil("\"code\":\"unsupported_media_type\"}}"))
                    .startsWith("HTTP/1.1 400 ");
            assertThat(h.prefill.requests()).isEmpty();
        }
    }

    @Test
    void aFaultInTheBodyIsToldWithItsPlace() throws Exception {
        try (RouterHarness h = harness()) {
            assertThat(h.complete("{\n\"prompt\": x}").body()).contains("line 2, column 1");
        }
    }

    @Test
    void wrongMethodIsRefusedWithTheRightOne() throws Exception {
        try (RouterHarness h = harness()) {
            HttpResponse<String> get = h.request("GET", "/v1/chat/completions");
            HttpResponse<String> delete = h.request("DELETE", "/health");

            assertRefused(get, 405, "method_not_allowed");
            assertThat(get.headers().firstValue("allow")).contains("POST");
            assertRefused(delete, 405, "method_not_allowed");
            assertThat(delete.headers().firstValue("allow")).contains("GET");
            assertThat(h.request("HEAD", "/v1/completions").statusCode()).isEqualTo(405);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{",
                "[]",
                "\"x\"",
                "null",
                "{} {}",
                "{\"a\":NaN}",
                "{'a':1}",
                "{\"a\":01}"
            })
    void bodyThatIsNotAJsonObjectIsRefusedBeforeAnyEngine(String body) throws Exception {
        try (RouterHarness h = harness()) {
            assertRefused(h.complete(body), 400, "invalid_json");
            assertThat(h.prefill.requests()).isEmpty();
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"rejected\"");
        }
    }

    @Test
    void hostileJsonIsRefused() throws Exception {
        try (RouterHarness h = harness()) {
            String deep = "[".repeat(100_000) + "]".repeat(100_000);
            assertRefused(h.complete("{\"prompt\":" + deep + "}"), 400, "invalid_json");
            assertRefused(h.complete("{\"n\":" + "9".repeat(5000) + "}"), 400, "invalid_json");
            assertRefused(h.complete("{\"n\":1e99999999999999}"), 400, "invalid_json");
            assertThat(h.prefill.requests()).isEmpty();
            assertThat(h.complete("{\"prompt\":\"p\",\"x\":1e999999}").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void bodyAboveTheLimitIsRefusedAndOneAtTheLimitIsNot() throws Exception {
        int limit = 2000;
        String fits = "{\"prompt\":\"" + "x".repeat(limit - 13) + "\"}";
        try (RouterHarness h =
                        new RouterHarness(
                                handingOver(), answering("{}"), c -> c.maxBodyBytes(limit));
                RawClient client = h.rawClient()) {
            assertThat(fits).hasSize(limit);
            assertThat(h.complete(fits).statusCode()).isEqualTo(200);
            assertRefused(h.complete(fits + " "), 413, "body_too_large");
            assertRefused(h.complete("x".repeat(1_000_000)), 413, "body_too_large");

            client.send(
                    """
                    POST /v1/completions HTTP/1.1\r
                    Host: router\r
                    Transfer-Encoding: chunked\r
                    \r
                    7fffffff\r
                    """);
            assertThat(client.readUntil("\"code\":\"body_too_large\"}}"))
                    .startsWith("HTTP/1.1 413 ");
            assertThat(h.prefill.requests()).hasSize(1);
        }
    }

    @Test
    void clientThatSendsARefusedBodyToItsEndStillGetsTheAnswer() throws Exception {
        // More than the buffers of two sockets hold.
        String piece = "x".repeat(1_000_000);
        int pieces = 20;
        try (RouterHarness h =
                        new RouterHarness(
                                handingOver(), answering("{}"), c -> c.maxBodyBytes(1000));
                RawClient client = h.rawClient()) {
            client.send(
                    "POST /v1/completions HTTP/1.1\r\nHost: router\r\nContent-Length: "
                            + pieces * piece.length()
                            + "\r\n\r\n");
            for (int i = 0; i < pieces; i++) {
                client.send(piece);
            }

            assertThat(client.readUntil("\"code\":\"body_too_large\"}}"))
                    .startsWith("HTTP/1.1 413 ");
        }
    }

    @Test
    void chunksThatAreNoneAreABadRequest() throws Exception {
        try (RouterHarness h = harness();
                RawClient client = h.rawClient()) {
            client.send(
                    """
                    POST /v1/completions HTTP/1.1\r
                    Host: router\r
                    Transfer-Encoding: chunked\r
                    \r
                    ZZ\r
                    {}\r
                    """);

            assertThat(client.readToEnd())
                    .startsWith("HTTP/1.1 400 ")
                    .contains("the body's chunks are malformed")
                    .containsIgnoringCase("\r\nConnection: close\r\n")
                    .endsWith("}}");
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"rejected\"");
            assertThat(h.prefill.requests()).isEmpty();
        }
    }

    @Test
    void chunkedAndAnnouncedBodiesAreAccepted() throws Exception {
        try (RouterHarness h = harness();
                RawClient client = h.rawClient()) {
            client.send(
                    """
                    POST /v1/completions HTTP/1.1\r
                    Host: router\r
                    Transfer-Encoding: chunked\r
                    Expect: 100-continue\r
                    \r
                    """);
            client.readUntil("HTTP/1.1 100 Continue\r\n\r\n");
            client.send("5\r\n{\"pro\r\n9\r\nmpt\":\"p\"}\r\n0\r\n\r\n");

            assertThat(client.readUntil("{\"ok\":1}")).contains("HTTP/1.1 200 ");
            assertThat(h.decode.request().json().get("prompt").asText()).isEqualTo("p");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"a b", "é", "%", ""})
    void requestIdIsPassedExactlyOrRefused(String id) throws Exception {
        try (RouterHarness h = harness();
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", BODY, "X-Request-Id: " + id, "Connection: close");
            String answer = client.readToEnd();

            if (id.equals("%")) {
                assertThat(h.decode.request().header("x-request-id")).containsExactly("%");
            } else {
                assertThat(answer).startsWith("HTTP/1.1 400 ").contains("\"illegal_request_id\"");
                assertThat(h.prefill.requests()).isEmpty();
            }
        }
    }

    @Test
    void compressedBodyIsRefused() throws Exception {
        try (RouterHarness h = harness()) {
            HttpResponse<String> response =
                    h.post("/v1/completions", BODY, "content-encoding", "gzip");

            assertRefused(response, 400, "bad_request");
            assertThat(h.prefill.requests()).isEmpty();
        }
    }

    @Test
    void requestsBeyondTheLimitAreRefusedUntilAPlaceIsFree() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        FakeEngine.Script prefill =
                call -> {
                    try {
                        release.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                    handingOver().serve(call);
                };
        try (RouterHarness h =
                        new RouterHarness(
                                prefill, answering("{\"ok\":1}"), c -> c.maxRequestsInFlight(1));
                RawClient first = h.rawClient()) {
            first.post("/v1/completions", BODY);
            h.prefill.awaitRequests(1);

            HttpResponse<String> second = h.complete(BODY);
            assertThat(second.statusCode()).isEqualTo(503);
            assertThat(second.headers().firstValue("retry-after")).contains("1");
            assertThat(json(second.body()).at("/error/code").asText()).isEqualTo("router_busy");

            release.countDown();
            first.readUntil("{\"ok\":1}");
            Await.until("a free place", () -> statusOf(h) == 200);
        }
    }

    @Test
    void modelsAreADecodeEnginesAnswer() throws Exception {
        FakeEngine.Script decode = call -> call.json(200, "{\"data\":[{\"id\":\"m\"}]}");
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            HttpResponse<String> response = h.request("GET", "/v1/models");

            assertThat(response.body()).isEqualTo("{\"data\":[{\"id\":\"m\"}]}");
            assertThat(h.decode.request().method()).isEqualTo("GET");
            assertThat(h.decode.request().path()).isEqualTo("/v1/models");
            assertThat(h.prefill.requests()).isEmpty();
            h.decode.close();
            assertThat(h.request("GET", "/v1/models").statusCode()).isEqualTo(503);
        }
    }

    @Test
    void healthNeedsOneReadyEngineOfEachRole() throws Exception {
        try (FakeEngine spare = new FakeEngine(handingOver());
                RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{}"),
                                c -> c.prefillEngine(spare.url()))) {
            awaitHealth(h, 200);
            spare.healthStatus(500);
            h.awaitMetric(0, "dormouse_router_engine_healthy", "prefill-1");
            awaitHealth(h, 200);
            h.prefill.readyStatus(503);
            awaitHealth(h, 503);
            assertThat(h.metric("dormouse_router_engine_healthy", "prefill-0")).isEqualTo(1);
            assertThat(h.metric("dormouse_router_engine_ready", "prefill-0")).isZero();
            JsonNode body = json(h.request("GET", "/health").body());
            assertThat(body.get("status").asText()).isEqualTo("unavailable");
            assertThat(body.get("engines"))
                    .isEqualTo(
                            json(
                                    """
                                    [{"engine":"prefill-0","healthy":true,"ready":false,"detail":"not ready: answered 503"},
                                     {"engine":"prefill-1","healthy":false,"ready":false,"detail":"answered 500"},
                                     {"engine":"decode-0","healthy":true,"ready":true,"detail":"answered 200"}]
                                    """));
            assertThat(h.request("GET", "/health/live").statusCode()).isEqualTo(200);
            assertThat(h.complete(BODY).statusCode()).as("health is a hint only").isEqualTo(200);

            spare.healthStatus(200);
            awaitHealth(h, 200);
            h.decode.close();
            awaitHealth(h, 503);
        }
    }

    @Test
    void unhealthyEngineIsOnlyUsedWhenNoneIsHealthy() throws Exception {
        try (FakeEngine spare = new FakeEngine(handingOver());
                RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{}"),
                                c -> c.prefillEngine(spare.url()))) {
            spare.healthStatus(503);
            h.awaitMetric(1, "dormouse_router_engine_healthy", "prefill");
            for (int i = 0; i < 4; i++) {
                h.complete(BODY);
            }

            assertThat(h.prefill.requests()).hasSize(4);
            assertThat(spare.requests()).isEmpty();
        }
    }

    @Test
    void sleepingEngineIsOnlyUsedWhenNoneIsReady() throws Exception {
        try (FakeEngine spare = new FakeEngine(handingOver());
                RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{}"),
                                c -> c.prefillEngine(spare.url()))) {
            spare.readyStatus(503);
            h.awaitMetric(1, "dormouse_router_engine_ready", "prefill");
            h.awaitMetric(2, "dormouse_router_engine_healthy", "prefill");
            for (int i = 0; i < 4; i++) {
                h.complete(BODY);
            }
            assertThat(h.prefill.requests()).hasSize(4);
            assertThat(spare.requests()).isEmpty();

            h.prefill.healthStatus(500);
            h.awaitMetric(0, "dormouse_router_engine_ready", "prefill");
            h.complete(BODY);
            assertThat(spare.requests()).as("the sleeper before the dead").hasSize(1);
        }
    }

    @Test
    void engineWithoutReadinessCheckIsReadyWhileItLives() throws Exception {
        try (RouterHarness h = harness()) {
            h.prefill.readyStatus(404);
            h.decode.readyStatus(404);
            awaitHealth(h, 200);
            h.awaitMetric(2, "dormouse_router_engine_ready");
            h.prefill.healthStatus(500);
            awaitHealth(h, 503);
        }
    }

    @Test
    void requestIdIsAsLongAsAnEngineTakesIt() throws Exception {
        try (RouterHarness h = harness()) {
            String longest = "i".repeat(128);
            h.post("/v1/completions", BODY, "X-Request-Id", longest);
            assertThat(h.decode.request().header("x-request-id")).containsExactly(longest);
            assertRefused(
                    h.post("/v1/completions", BODY, "X-Request-Id", longest + "i"),
                    400,
                    "illegal_request_id");
        }
    }

    @Test
    void everySeriesIsThereFromTheStart() throws Exception {
        try (RouterHarness h = harness()) {
            String metrics = h.request("GET", "/metrics").body();

            for (Outcome outcome : Outcome.values()) {
                assertThat(metrics)
                        .contains(
                                "dormouse_router_requests_total{endpoint=\"/v1/completions\","
                                        + "outcome=\""
                                        + outcome.label()
                                        + "\"} 0.0");
            }
            assertThat(
                            List.of(
                                    "dormouse_router_leg_requests_total",
                                    "dormouse_router_legs_in_flight",
                                    "dormouse_router_leg_seconds_bucket",
                                    "dormouse_router_leg_seconds_count",
                                    "dormouse_router_decode_first_byte_seconds_bucket",
                                    "dormouse_router_prefill_without_handover_total",
                                    "dormouse_router_prefill_bypassed_total",
                                    "dormouse_router_engine_healthy",
                                    "dormouse_router_engine_ready"))
                    .allMatch(name -> metrics.contains("\n" + name + "{"), "present in " + metrics);
        }
    }

    @Test
    void usedPortIsNamedInTheFailure() {
        try (FakeEngine busy = new FakeEngine(call -> {})) {
            RouterConfig config =
                    RouterConfig.builder()
                            .port(busy.port())
                            .prefillEngine(busy.url())
                            .decodeEngine(busy.url())
                            .build();

            assertThatThrownBy(() -> Router.start(config))
                    .isInstanceOf(RouterException.class)
                    .hasMessageContaining("127.0.0.1:" + busy.port())
                    .hasMessageContaining("in use");
        }
    }

    @Test
    void closeBreaksOffWhatIsInFlightAndIsIdempotent() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        FakeEngine.Script prefill =
                call -> {
                    call.awaitClosed();
                    cancelled.countDown();
                };
        try (RouterHarness h = new RouterHarness(prefill, answering("{}"));
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", BODY);
            h.prefill.awaitRequests(1);

            h.router.close();
            h.router.close();

            cancelled.await();
            assertThat(client.readToEnd()).doesNotContain("200");
        }
    }

    private static RouterHarness harness() {
        return new RouterHarness(handingOver(), answering("{\"ok\":1}"));
    }

    private static void awaitHealth(RouterHarness h, int status) {
        Await.until("health " + status, () -> status(h) == status);
    }

    private static int status(RouterHarness h) {
        try {
            return h.request("GET", "/health").statusCode();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static int statusOf(RouterHarness h) {
        try {
            return h.complete(BODY).statusCode();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void assertRefused(HttpResponse<String> response, int status, String code) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        assertThat(response.headers().firstValue("content-type")).contains("application/json");
        JsonNode error = json(response.body()).get("error");
        assertThat(error.get("code").asText()).isEqualTo(code);
        assertThat(error.get("type").asText()).isEqualTo("invalid_request_error");
        assertThat(error.get("message").asText()).isNotEmpty();
    }
}
