package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Usage;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;
import java.nio.charset.StandardCharsets;

/** JSON answers. */
final class Answers {
    static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Answers() {}

    static void send(ServerResponse response, JsonNode body) {
        send(response, 200, body);
    }

    static void send(ServerResponse response, ApiException error) {
        if (error.status() == 503) {
            response.header(HeaderNames.RETRY_AFTER, "1");
        }
        if (error.status() == 401) {
            response.header(HeaderNames.WWW_AUTHENTICATE, "Bearer");
        }
        send(response, error.status(), error.toJson());
    }

    private static void send(ServerResponse response, int status, JsonNode body) {
        response.status(Status.create(status));
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(body.toString().getBytes(StandardCharsets.UTF_8));
    }

    /** Token counts as the API names them. */
    static ObjectNode usage(Usage usage) {
        ObjectNode json = JSON.objectNode();
        json.put("prompt_tokens", usage.promptTokens());
        json.put("completion_tokens", usage.completionTokens());
        json.put("total_tokens", usage.promptTokens() + usage.completionTokens());
        json.putObject("prompt_tokens_details").put("cached_tokens", usage.cachedTokens());
        return json;
    }
}
