package dev.dormouse.router;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** What clients see of a router that is about to end. */
final class RouterEndTest {
    private static final String BODY = "{\"prompt\":\"a\"}";
    private static final String ANSWER = "{\"choices\":[]}";

    @Test
    void requestsAreAnsweredWholeAndNewOnesRefused() throws Exception {
        CountDownLatch told = new CountDownLatch(1);
        FakeEngine.Script slow =
                call -> {
                    awaitUninterruptibly(told);
                    call.json(200, ANSWER);
                };
        try (RouterHarness cluster = new RouterHarness(RouterHarness.handingOver(), slow)) {
            CompletableFuture<HttpResponse<String>> answer =
                    CompletableFuture.supplyAsync(() -> complete(cluster));
            cluster.decode.awaitRequests(1);
            assertThat(cluster.router.windDown(Duration.ZERO)).isFalse();

            HttpResponse<String> late = cluster.complete(BODY);
            assertThat(late.statusCode()).isEqualTo(503);
            assertThat(late.body()).contains("shuts down");
            assertThat(late.headers().firstValue("Retry-After")).isPresent();
            assertThat(late.headers().firstValue("Connection")).contains("close");
            assertThat(cluster.request("GET", "/health").statusCode()).isEqualTo(503);
            assertThat(cluster.request("GET", "/health/live").statusCode()).isEqualTo(200);

            told.countDown();
            assertThat(answer.join().statusCode()).isEqualTo(200);
            assertThat(answer.join().body()).isEqualTo(ANSWER);
            Await.until("all are answered", () -> windDown(cluster));
        }
    }

    private static boolean windDown(RouterHarness cluster) {
        try {
            return cluster.router.windDown(Duration.ZERO);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static HttpResponse<String> complete(RouterHarness cluster) {
        try {
            return cluster.complete(BODY);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
