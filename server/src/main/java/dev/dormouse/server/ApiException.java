package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Failed;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.http.ErrorBody;
import org.jspecify.annotations.Nullable;

/** A request that is answered with an error, in the shape of OpenAI's API. */
final class ApiException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int status;
    private final @Nullable String param;
    private final String code;

    private ApiException(int status, String code, @Nullable String param, String message) {
        super(message);
        this.status = status;
        this.code = code;
        this.param = param;
    }

    /** The request itself is wrong; {@code param} names the field. */
    static ApiException badRequest(@Nullable String param, String message) {
        return new ApiException(400, "invalid_value", param, message);
    }

    static ApiException of(int status, String code, String message) {
        return new ApiException(status, code, null, message);
    }

    static ApiException of(Failed failure) {
        return switch (failure.kind()) {
            case INVALID_REQUEST -> badRequest(null, failure.message());
            case PAUSED -> of(503, "engine_paused", failure.message());
            case UNAVAILABLE -> of(503, "engine_unavailable", failure.message());
            case KV_TRANSFER_FAILED -> of(502, "kv_transfer_failed", failure.message());
            case INTERNAL -> of(500, "internal_error", failure.message());
        };
    }

    static ApiException of(TransitionRefusedException refusal) {
        String message = String.valueOf(refusal.getMessage());
        return switch (refusal.reason()) {
            case INVALID -> badRequest(null, message);
            case CONFLICT -> of(409, "conflict", message);
            case UNAVAILABLE -> of(503, "engine_unavailable", message);
        };
    }

    int status() {
        return status;
    }

    /** Stable name for programs. */
    String code() {
        return code;
    }

    ObjectNode toJson() {
        return ErrorBody.of(status, code, param, String.valueOf(getMessage()));
    }
}
