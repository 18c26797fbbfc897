package dev.dormouse.router;

import static dev.dormouse.router.RouterHarness.answering;
import static dev.dormouse.router.RouterHarness.handingOver;
import static dev.dormouse.router.RouterHarness.json;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How answers travel from a decode engine to the client. */
class StreamingTest {
    private static final String STREAMED = "{\"prompt\":\"p\",\"stream\":true}";

    @Test
    void everyPieceReachesTheClientBeforeTheNextIsMade() throws Exception {
        CountDownLatch firstSeen = new CountDownLatch(1);
        CountDownLatch secondSeen = new CountDownLatch(1);
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: {\"t\":1}\n\n");
                    await(firstSeen);
                    call.chunk("data: {\"t\":2}\n\n");
                    await(secondSeen);
                    call.chunk("data: [DONE]\n\n");
                    call.lastChunk();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode);
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", STREAMED);

            String head = client.readUntil("data: {\"t\":1}\n\n");
            firstSeen.countDown();
            client.readUntil("data: {\"t\":2}\n\n");
            secondSeen.countDown();
            String rest = client.readUntil("\r\n0\r\n\r\n");

            assertThat(head)
                    .startsWith("HTTP/1.1 200 ")
                    .containsIgnoringCase("content-type: text/event-stream; charset=utf-8\r\n");
            assertThat(rest).containsOnlyOnce("[DONE]").doesNotContain("error");
            h.awaitMetric(
                    1, "dormouse_router_leg_requests_total", "leg=\"decode\"", "outcome=\"ok\"");
            assertThat(h.metric("dormouse_router_decode_first_byte_seconds_count")).isEqualTo(1);
        }
    }

    @Test
    void oneClientConnectionServesManyRequests() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: [DONE]\n\n");
                    call.lastChunk();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode);
                RawClient client = h.rawClient()) {
            for (int i = 0; i < 3; i++) {
                client.post("/v1/completions", STREAMED);
                assertThat(client.readUntil("\r\n0\r\n\r\n")).contains("data: [DONE]");
            }
            client.post("/v1/completions", STREAMED);
            client.post("/v1/completions", STREAMED);
            client.readUntil("\r\n0\r\n\r\n");
            client.readUntil("\r\n0\r\n\r\n");

            assertThat(h.decode.requests()).hasSize(5);
        }
    }

    @Test
    void breakBetweenEventsEndsTheStreamWithAnErrorEvent() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: {\"t\":1}\n\n");
                    call.hangUp();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            HttpResponse<String> response = h.complete(STREAMED);

            assertErrorEvent(response.body(), "decode_broken");
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"broken\"");
        }
    }

    @Test
    void streamThatEndsWithoutItsEndMarkerIsAnError() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: {\"t\":1}\n\n");
                    call.lastChunk();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            assertErrorEvent(h.complete(STREAMED).body(), "decode_broken");
        }
    }

    @Test
    void silenceInTheMiddleOfAStreamIsBounded() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: {\"t\":1}\n\n");
                    call.awaitClosed();
                };
        try (RouterHarness h =
                new RouterHarness(
                        handingOver(), decode, c -> c.decodeTimeout(Duration.ofMillis(300)))) {
            assertErrorEvent(h.complete(STREAMED).body(), "decode_timeout");
        }
    }

    @Test
    void breakInsideAnEventCutsTheClientsConnection() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: {\"t\":1}\n\ndata: {\"t\"");
                    call.hangUp();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode);
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", STREAMED);
            String seen = client.readToEnd();

            assertThat(seen)
                    .contains("data: {\"t\":1}\n\ndata: {\"t\"")
                    .doesNotEndWith("0\r\n\r\n");
            assertThat(seen).doesNotContain("[DONE]").doesNotContain("error");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"Content-Length: 100", "Transfer-Encoding: chunked"})
    void brokenPlainAnswerNeverLooksWhole(String framing) throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.head(200, "application/json", framing);
                    call.raw(framing.startsWith("T") ? "5\r\n{\"a\":\r\n" : "{\"a\":");
                    call.hangUp();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            assertThatThrownBy(() -> h.complete("{\"prompt\":\"p\"}"))
                    .isInstanceOf(IOException.class);
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"broken\"");
        }
    }

    @Test
    void largeAnswerComesThroughWhole() throws Exception {
        String answer = "{\"text\":\"" + "Größe ".repeat(400_000) + "\"}";
        try (RouterHarness h = new RouterHarness(handingOver(), answering(answer))) {
            HttpResponse<String> response = h.complete("{\"prompt\":\"p\"}");

            assertThat(response.body().equals(answer)).as("bodies equal").isTrue();
        }
    }

    @Test
    void clientThatDoesNotReadIsDroppedWithItsDecodeLeg() throws Exception {
        String event = "data: " + "x".repeat(60_000) + "\n\n";
        CountDownLatch ended = new CountDownLatch(1);
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    try {
                        while (true) {
                            call.chunk(event);
                        }
                    } finally {
                        ended.countDown();
                    }
                };
        try (RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                decode,
                                c -> c.clientTimeout(Duration.ofMillis(500)));
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", STREAMED);

            await(ended);
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"cancelled\"");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void connectionClosesAfterTheAnswerIfTheClientWantsThat(boolean streamed) throws Exception {
        FakeEngine.Script decode =
                call -> {
                    if (streamed) {
                        call.startEvents();
                        call.chunk("data: [DONE]\n\n");
                        call.lastChunk();
                    } else {
                        call.json(200, "{}");
                    }
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode);
                RawClient client = h.rawClient()) {
            client.post("/v1/completions", STREAMED, "Connection: close");

            assertThat(client.readToEnd())
                    .containsIgnoringCase("connection: close\r\n")
                    .endsWith(streamed ? "data: [DONE]\n\n\r\n0\r\n\r\n" : "{}");
        }
    }

    private static void assertErrorEvent(String body, String code) {
        assertThat(body).startsWith("data: {\"t\":1}\n\ndata: ").endsWith("\n\n");
        assertThat(body).doesNotContain("[DONE]");
        JsonNode error = json(body.strip().substring(body.lastIndexOf("data: ") + 6)).get("error");
        assertThat(error.get("code").asText()).isEqualTo(code);
        assertThat(error.get("leg").asText()).isEqualTo("decode");
        assertThat(error.get("type").asText()).isEqualTo("server_error");
    }

    private static void await(CountDownLatch latch) throws IOException {
        try {
            if (!latch.await(30, TimeUnit.SECONDS)) {
                throw new IOException("waited in vain");
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}
