package dev.dormouse.router.routing;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.jspecify.annotations.Nullable;

/** What is to be done next for a request. */
public sealed interface Step {
    /**
     * Send the request to an engine; then tell {@link Routing#answered} or {@link Routing#failed}.
     *
     * @param engine which one
     * @param body what to send, or null for a request without body
     * @param handOver what the client is told if this engine's answer goes on to it, or null
     */
    record Ask(Engine engine, @Nullable ObjectNode body, @Nullable HandOver handOver)
            implements Step {}

    /** Read the prefill engine's whole answer; then tell {@link Routing#prefilled}. */
    record ReadAnswer() implements Step {}

    /**
     * Pass the engine's answer on to the client as it comes; then tell {@link Routing#passedOn},
     * {@link Routing#failed} as long as nothing has gone to the client, or {@link
     * Routing#brokeOff}.
     *
     * @param leg whose answer it is
     * @param outcome what its status means: success, or the client's fault
     */
    record PassOn(Role leg, Outcome outcome) implements Step {}

    /**
     * Answer with an error for the engine's status, and with the engine's own reason; then the
     * request has failed.
     *
     * @param leg whose answer it is
     * @param status neither success nor the client's fault
     */
    record Explain(Role leg, int status) implements Step {
        /** The error; {@code reason} may be empty, {@code retryAfter} is the engine's header. */
        public ApiError error(String reason, @Nullable String retryAfter) {
            return ApiError.ofStatus(leg, status, reason, retryAfter);
        }
    }

    /**
     * Answer with an error; the last step.
     *
     * @param outcome how the request has ended
     */
    record Refuse(ApiError error, Outcome outcome) implements Step {}

    /**
     * End the event stream that the client is getting with an error event; the last step.
     *
     * @param outcome how the request has ended
     */
    record EndStream(ApiError error, Outcome outcome) implements Step {}

    /**
     * Drop the client's connection: nobody is there, or half an answer must not pass as whole; the
     * last step.
     *
     * @param outcome how the request has ended
     * @param detail for people
     */
    record BreakOff(Outcome outcome, String detail) implements Step {}

    /**
     * Nothing: the client has its answer.
     *
     * @param outcome how the request has ended
     */
    record Finished(Outcome outcome) implements Step {}
}
