package dev.dormouse.router;

import static dev.dormouse.router.RouterHarness.answering;
import static dev.dormouse.router.RouterHarness.handingOver;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A client that leaves takes the work it asked for with it, in every phase. */
class VanishingClientTest {
    private static final String BODY = "{\"prompt\":\"p\",\"stream\":true}";

    @Test
    void leavingDuringPrefillCancelsItAndDecodeIsNeverAsked() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        FakeEngine.Script prefill =
                call -> {
                    call.awaitClosed();
                    cancelled.countDown();
                };
        try (RouterHarness h = new RouterHarness(prefill, answering("{}"))) {
            RawClient client = h.rawClient();
            client.post("/v1/completions", BODY);
            h.prefill.awaitRequests(1);
            client.close();

            assertThat(cancelled.await(30, TimeUnit.SECONDS)).isTrue();
            awaitCancelled(h, "prefill");
            assertThat(h.decode.requests()).isEmpty();
        }
    }

    @Test
    void leavingBeforeDecodeAnswersCancelsIt() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        FakeEngine.Script decode =
                call -> {
                    call.awaitClosed();
                    cancelled.countDown();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            RawClient client = h.rawClient();
            client.post("/v1/completions", BODY);
            h.decode.awaitRequests(1);
            client.close();

            assertThat(cancelled.await(30, TimeUnit.SECONDS)).isTrue();
            awaitCancelled(h, "decode");
        }
    }

    @Test
    void leavingInTheMiddleOfAStreamCancelsDecodeEvenWhileItIsSilent() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    call.chunk("data: 1\n\n");
                    call.awaitClosed();
                    cancelled.countDown();
                };
        try (RouterHarness h = new RouterHarness(handingOver(), decode)) {
            RawClient client = h.rawClient();
            client.post("/v1/completions", BODY);
            client.readUntil("data: 1\n\n");
            client.close();

            assertThat(cancelled.await(30, TimeUnit.SECONDS)).isTrue();
            awaitCancelled(h, "decode");
        }
    }

    @Test
    void bodyThatNeverComesIsNotWaitedForLongerThanTheClientTimeout() throws Exception {
        try (RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{}"),
                                c -> c.clientTimeout(Duration.ofMillis(300)));
                RawClient client = h.rawClient()) {
            client.send(
                    """
                    POST /v1/completions HTTP/1.1\r
                    Host: router\r
                    Content-Length: 100\r
                    \r
                    {""");

            assertThat(client.readToEnd()).isEmpty();
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"cancelled\"");
            assertThat(h.prefill.requests()).isEmpty();
        }
    }

    @Test
    void bodyThatTricklesIsCutOffAtTheClientTimeout() throws Exception {
        try (RouterHarness h =
                        new RouterHarness(
                                handingOver(),
                                answering("{}"),
                                c -> c.clientTimeout(Duration.ofMillis(300)));
                RawClient client = h.rawClient()) {
            client.send(
                    """
                    POST /v1/completions HTTP/1.1\r
                    Host: router\r
                    Content-Length: 1000000\r
                    \r
                    """);

            Await.until("the connection broken", () -> !sent(client));
            h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"cancelled\"");
        }
    }

    @Test
    void nothingStaysInFlightAfterManyClientsLeftAtAnyMoment() throws Exception {
        FakeEngine.Script decode =
                call -> {
                    call.startEvents();
                    for (int i = 0; i < 20; i++) {
                        call.chunk("data: " + i + "\n\n");
                        pause(1);
                    }
                    call.chunk("data: [DONE]\n\n");
                    call.lastChunk();
                };
        FakeEngine.Script prefill =
                call -> {
                    pause(3);
                    handingOver().serve(call);
                };
        try (RouterHarness h = new RouterHarness(prefill, decode)) {
            Seeded.forAll(
                    60,
                    random -> {
                        try (RawClient client = h.rawClient()) {
                            client.post("/v1/completions", BODY);
                            pause(random.nextInt(25));
                        }
                    });

            h.awaitMetric(60, "dormouse_router_requests_total", "/v1/completions");
            h.awaitMetric(0, "dormouse_router_legs_in_flight");
            assertThat(h.complete(BODY).body()).contains("data: 19\n\ndata: [DONE]\n\n");
        }
    }

    private static boolean sent(RawClient client) {
        try {
            client.send(" ");
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    private static void awaitCancelled(RouterHarness h, String leg) {
        h.awaitMetric(
                1,
                "dormouse_router_leg_requests_total",
                "leg=\"" + leg + "\"",
                "outcome=\"cancelled\"");
        h.awaitMetric(1, "dormouse_router_requests_total", "outcome=\"cancelled\"");
        h.awaitMetric(0, "dormouse_router_legs_in_flight");
    }

    /** Lets time pass in a script; no assertion depends on how much. */
    private static void pause(int millis) throws IOException {
        try {
            new CountDownLatch(1).await(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}
