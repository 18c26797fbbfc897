package dev.dormouse.http;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.helidon.http.DirectHandler;
import io.helidon.http.HeaderNames;
import io.helidon.http.ServerResponseHeaders;
import io.helidon.http.Status;
import io.helidon.webserver.http.DirectHandlers;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Gives OpenAI's shape to what Helidon refuses by itself, such as a body that is too large. */
public final class Refusals {
    private Refusals() {}

    /** Handlers for all that Helidon refuses. */
    public static DirectHandlers handlers() {
        DirectHandlers.Builder handlers = DirectHandlers.builder();
        for (DirectHandler.EventType type : DirectHandler.EventType.values()) {
            handlers.addHandler(
                    type,
                    (request, event, status, headers, message) ->
                            refusal(event, status, headers, message));
        }
        return handlers.build();
    }

    private static DirectHandler.TransportResponse refusal(
            DirectHandler.EventType event,
            Status status,
            ServerResponseHeaders headers,
            @Nullable String message) {
        String code = status.code() == 413 ? "body_too_large" : "bad_request";
        ObjectNode error =
                ErrorBody.of(
                        status.code(),
                        status.code() < 500 ? code : "internal_error",
                        null,
                        message == null || message.isEmpty() ? status.reasonPhrase() : message);
        headers.set(HeaderNames.CONTENT_TYPE, "application/json");
        return DirectHandler.TransportResponse.builder()
                .status(status)
                .headers(headers)
                .keepAlive(event.keepAlive())
                .entity(error.toString().getBytes(StandardCharsets.UTF_8))
                .build();
    }
}
