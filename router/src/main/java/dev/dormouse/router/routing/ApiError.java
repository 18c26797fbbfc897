package dev.dormouse.router.routing;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.http.ErrorBody;
import org.jspecify.annotations.Nullable;

/**
 * An error as clients see it, in OpenAI's shape. If an engine is at fault, {@code leg} and, if it
 * answered at all, {@code upstream_status} stand beside OpenAI's four fields.
 *
 * @param status HTTP status
 * @param code stable name for programs
 * @param message for people; names no address
 * @param leg the leg that failed
 * @param upstreamStatus the engine's HTTP status
 * @param retryAfter value of the {@code Retry-After} header
 */
public record ApiError(
        int status,
        String code,
        String message,
        @Nullable Role leg,
        @Nullable Integer upstreamStatus,
        @Nullable String retryAfter) {
    /** Names the leg whose engine is at fault, on every answer that is not a success. */
    public static final String FAILED_LEG = "x-dormouse-failed-leg";

    /** An error that no engine had a part in. */
    public static ApiError of(int status, String code, String message) {
        return new ApiError(status, code, message, null, null, null);
    }

    /**
     * An engine that gave no usable answer.
     *
     * @param outcome what happened
     * @param message names no address
     */
    public static ApiError of(Role leg, Outcome outcome, String message) {
        String prefix = leg.label() + "_";
        return switch (outcome) {
            case UNREACHABLE -> new ApiError(503, prefix + "unreachable", message, leg, null, "1");
            case TIMED_OUT -> new ApiError(504, prefix + "timeout", message, leg, null, null);
            case OK, REJECTED, FAILED, BROKEN, CANCELLED ->
                    new ApiError(502, prefix + "broken", message, leg, null, null);
        };
    }

    /** An engine that took the request and ended it by itself, without an answer. */
    public static ApiError aborted(Role leg) {
        String message =
                leg.label()
                        + " engine ended the request, as it does when it pauses or falls asleep";
        return new ApiError(503, leg.label() + "_unavailable", message, leg, null, "1");
    }

    /**
     * An engine's answer with a status that is neither success nor the client's fault.
     *
     * @param reason the engine's own words, or empty
     */
    public static ApiError ofStatus(
            Role leg, int status, String reason, @Nullable String retryAfter) {
        String message =
                leg.label()
                        + " engine answered "
                        + status
                        + (reason.isEmpty() ? "" : ": " + reason);
        return status == 503
                ? new ApiError(503, leg.label() + "_unavailable", message, leg, 503, retryAfter)
                : new ApiError(502, leg.label() + "_failed", message, leg, status, null);
    }

    /** The body. */
    public ObjectNode toJson() {
        ObjectNode body = ErrorBody.of(status, code, null, message);
        ObjectNode error = body.withObject("/" + ErrorBody.ERROR);
        if (leg != null) {
            error.put("leg", leg.label());
        }
        if (upstreamStatus != null) {
            error.put("upstream_status", upstreamStatus);
        }
        return body;
    }

    /** The body as bytes. */
    public byte[] toBytes() {
        return Json.write(toJson());
    }
}
