package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Paths, methods, keys and content types. */
class SurfaceTest extends ServerFixture {
    private static final String BODY = "{\"prompt\":\"x\"}";

    @Test
    void withKeysTheApiIsOpenToTheirHoldersOnly() {
        try (EngineServer locked = serve(10, ServedLegs.BOTH, "key-one", "key-two")) {
            EngineServer other = server;
            server = locked;
            try {
                for (String key : List.of("Bearer key-one", "bearer key-two", "Bearer  key-one ")) {
                    assertThat(status("POST", "/v1/completions", BODY, "Authorization", key))
                            .isEqualTo(200);
                }
                for (String key :
                        List.of(
                                "Bearer key-on",
                                "Bearer key-one2",
                                "key-one",
                                "Bearer ",
                                "Basic key-one")) {
                    HttpResponse<String> refused =
                            send("POST", "/v1/completions", BODY, "Authorization", key);
                    assertThat(refused.statusCode()).as(key).isEqualTo(401);
                    JsonNode error = json(refused.body()).path("error");
                    assertThat(error.path("code").asText()).isEqualTo("invalid_api_key");
                    assertThat(error.path("type").asText()).isEqualTo("invalid_request_error");
                    assertThat(refused.headers().firstValue("www-authenticate")).contains("Bearer");
                }
                assertThat(status("GET", "/v1/models", "")).isEqualTo(401);
                for (String detour :
                        List.of("//v1/completions", "/%76%31/completions", "/./v1/completions")) {
                    assertThat(status("POST", detour, BODY)).as(detour).isIn(401, 404);
                }
                assertThat(status("POST", "/v1/chat/completions", "{}")).isEqualTo(401);
                for (String open : List.of("/health", "/ready", "/ping", "/metrics", "/version")) {
                    assertThat(status("GET", open, "")).as(open).isEqualTo(200);
                }
                assertThat(engine.requests).hasSize(3);
            } finally {
                server = other;
            }
        }
    }

    private int status(String method, String path, String body, String... headers) {
        return send(method, path, body, headers).statusCode();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "GET|/v1/completions|POST",
                "DELETE|/v1/chat/completions|POST",
                "POST|/v1/models|GET",
                "PUT|/ping|GET, POST",
                "GET|/sleep|POST",
                "POST|/is_sleeping|GET"
            })
    void anotherMethodIsNotAllowed(String method, String path, String allowed) {
        HttpResponse<String> response = send(method, path, "");
        assertThat(response.statusCode()).isEqualTo(405);
        assertThat(response.headers().firstValue("allow")).contains(allowed);
        assertThat(json(response.body()).path("error").path("code").asText())
                .isEqualTo("method_not_allowed");
    }

    @Test
    void tellsItsModelItsVersionAndItsLoad() {
        JsonNode model = json(send("GET", "/v1/models/fake-model", "").body());
        assertThat(model.path("id").asText()).isEqualTo("fake-model");
        assertThat(model)
                .isEqualTo(json(send("GET", "/v1/models", "").body()).path("data").path(0));
        HttpResponse<String> missing = send("GET", "/v1/models/org%2Fother", "");
        assertThat(missing.statusCode()).isEqualTo(404);
        assertThat(json(missing.body()).path("error").path("message").asText())
                .contains("`org/other`");
        assertThat(json(send("GET", "/version", "").body()).path("version").asText())
                .isEqualTo("1.2.3");
        assertThat(json(send("GET", "/load", "").body()).path("server_load").asInt()).isZero();
        assertThat(status("POST", "/ping", "")).isEqualTo(200);
    }

    @Test
    void aRequestInFlightIsLoad() {
        engine.script = request -> List.of();
        java.util.concurrent.CompletableFuture<Integer> answer =
                java.util.concurrent.CompletableFuture.supplyAsync(
                        () -> status("POST", "/v1/completions", BODY));
        dev.dormouse.testkit.Await.until("the request", () -> !engine.listeners.isEmpty());
        assertThat(json(send("GET", "/load", "").body()).path("server_load").asInt()).isOne();
        script(engine.requests.getFirst(), "a").forEach(engine.listeners.getFirst()::onEvent);
        assertThat(answer.join()).isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource({
        "application/json,200",
        "Application/JSON; charset=utf-8,200",
        "application/vnd.api+json,200",
        "text/plain,400",
        "application/x-www-form-urlencoded,400",
        "multipart/form-data; boundary=x,400"
    })
    void onlyJsonIsTaken(String type, int expected) {
        HttpResponse<String> response = send("POST", "/v1/completions", BODY, "Content-Type", type);
        assertThat(response.statusCode()).isEqualTo(expected);
        if (expected == 400) {
            assertThat(json(response.body()).path("error").path("message").asText())
                    .contains(type)
                    .contains("application/json");
        }
    }

    @Test
    void aBodyThatNestsTooDeepOrIsTooLongIsRefused() {
        String deep = "[".repeat(1500) + "]".repeat(1500);
        JsonNode error =
                post(400, "/v1/completions", "{\"prompt\":\"x\",\"unknown\":" + deep + "}");
        assertThat(error.path("error").path("message").asText()).contains("nesting depth");
        assertThat(status("POST", "/v1/completions", "{\"prompt\":\"" + "x".repeat(10_000) + "\"}"))
                .isEqualTo(413);
    }

    @Test
    void aFieldThatNobodyKnowsIsIgnored() {
        post(200, "/v1/completions", "{\"prompt\":\"x\",\"unknown\":{\"a\":[1]},\"store\":true}");
    }
}
