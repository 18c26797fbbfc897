package dev.dormouse.router;

import dev.dormouse.router.routing.ApiError;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;

/** Answers clients with errors. */
final class ErrorAnswer {
    private ErrorAnswer() {}

    /** Answers a request with an error. */
    static void send(ApiError error, ServerResponse response) {
        response.status(Status.create(error.status()));
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        if (error.leg() != null) {
            response.header(ApiError.FAILED_LEG, error.leg().label());
        }
        if (error.retryAfter() != null) {
            response.header(HeaderNames.RETRY_AFTER, error.retryAfter());
        }
        response.send(error.toBytes());
    }
}
