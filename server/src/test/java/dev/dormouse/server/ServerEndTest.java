package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** What clients see of a server that is about to end. */
class ServerEndTest extends ServerFixture {
    private static final String BODY = "{\"prompt\":\"a\",\"max_tokens\":2}";

    @Test
    void itIsAliveButNotReadyAndTakesNoMoreRequests() throws InterruptedException {
        server.stopAdmitting();
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(send("GET", "/ready", "").statusCode()).isEqualTo(503);
        HttpResponse<String> refused = send("POST", "/v1/completions", BODY);
        assertThat(refused.statusCode()).isEqualTo(503);
        assertThat(refused.body()).contains("shuts down");
        assertThat(refused.headers().firstValue("Retry-After")).isPresent();
        assertThat(refused.headers().firstValue("Connection")).contains("close");
        assertThat(engine.requests).isEmpty();
        assertThat(server.awaitAnswers(Duration.ofSeconds(10))).isTrue();
    }

    @Test
    void aRequestThatIsThereIsAnsweredWhole() throws InterruptedException {
        engine.script = request -> List.of();
        CompletableFuture<HttpResponse<String>> answer =
                CompletableFuture.supplyAsync(() -> send("POST", "/v1/completions", BODY));
        Await.until("the engine has the request", () -> !engine.listeners.isEmpty());
        server.stopAdmitting();
        assertThat(server.awaitAnswers(Duration.ZERO)).isFalse();

        script(engine.requests.getFirst(), "Hello", " world")
                .forEach(engine.listeners.getFirst()::onEvent);
        assertThat(answer.join().statusCode()).isEqualTo(200);
        assertThat(json(answer.join().body()).path("choices").path(0).path("text").asText())
                .isEqualTo("Hello world");
        assertThat(server.awaitAnswers(Duration.ofSeconds(10))).isTrue();
    }
}
