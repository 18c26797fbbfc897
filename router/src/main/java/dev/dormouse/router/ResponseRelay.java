package dev.dormouse.router;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.router.routing.ApiError;
import dev.dormouse.router.routing.Json;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.router.routing.Role;
import dev.dormouse.router.routing.Routing;
import dev.dormouse.router.routing.Step;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Passes an engine's answer to the client, piece by piece as it comes. */
final class ResponseRelay {
    private static final int BUFFER_BYTES = 16 << 10;
    private static final int MAX_REASON_BYTES = 8 << 10;
    private static final int MAX_REASON_CHARS = 500;

    private final RouterMetrics metrics;

    ResponseRelay(RouterMetrics metrics) {
        this.metrics = metrics;
    }

    /**
     * Answers the client with an engine's answer, and tells how that went.
     *
     * @return the step after it; an event stream that is to be ended has been ended
     * @throws UpstreamFailure if the engine fails before a byte has gone to the client
     * @throws AbruptEnd if nothing can be written to the client any more
     */
    Step passOn(
            Step.PassOn step,
            Routing routing,
            UpstreamCall call,
            HttpResponse<?> head,
            ServerResponse response)
            throws UpstreamFailure {
        if (step.outcome() == Outcome.REJECTED) {
            response.header(ApiError.FAILED_LEG, step.leg().label());
        }
        byte[] buffer = new byte[BUFFER_BYTES];
        int count = call.read(buffer);
        response.status(Status.create(head.statusCode()));
        ForwardedHeaders.copyAnswer(head.headers(), response.headers());
        if (count < 0) {
            call.settle(step.outcome());
            response.send();
            return routing.passedOn(step.outcome());
        }
        if (step.leg() == Role.DECODE && step.outcome() == Outcome.OK) {
            metrics.firstByte(call.start());
        }
        boolean events = eventStream(head);
        if (!events) {
            head.headers().firstValueAsLong("content-length").ifPresent(response::contentLength);
        }
        OutputStream out = response.outputStream();
        SseTail tail = new SseTail();
        try {
            while (count >= 0) {
                write(out, buffer, count);
                tail.add(buffer, count);
                count = call.read(buffer);
            }
            if (events && step.outcome() == Outcome.OK && !tail.done()) {
                throw call.fail(Outcome.BROKEN);
            }
        } catch (UpstreamFailure e) {
            return endBroken(
                    routing.brokeOff(e.outcome(), e.detail(), events && tail.betweenEvents()), out);
        }
        call.settle(step.outcome());
        return routing.passedOn(step.outcome());
    }

    /**
     * Reads the reason for an engine's failure.
     *
     * @throws UpstreamFailure if the engine fails meanwhile
     */
    Step explain(Step.Explain step, UpstreamCall call, HttpResponse<?> head)
            throws UpstreamFailure {
        byte[] body = call.readUpTo(MAX_REASON_BYTES);
        call.settle(Outcome.FAILED);
        ApiError error =
                step.error(reason(body), head.headers().firstValue("retry-after").orElse(null));
        return new Step.Refuse(error, Outcome.FAILED);
    }

    /** An error event and a proper end if no event is cut in half; no {@code [DONE]} either way. */
    private static Step endBroken(Step step, OutputStream out) {
        if (step instanceof Step.EndStream end) {
            String error = new String(end.error().toBytes(), StandardCharsets.UTF_8);
            byte[] event = ("data: " + error + "\n\n").getBytes(StandardCharsets.UTF_8);
            write(out, event, event.length);
        }
        return step;
    }

    private static void write(OutputStream out, byte[] bytes, int count) {
        try {
            out.write(bytes, 0, count);
            out.flush();
        } catch (IOException | RuntimeException e) {
            throw new AbruptEnd(Outcome.CANCELLED, "writing to the client failed: " + e);
        }
    }

    private static boolean eventStream(HttpResponse<?> head) {
        return head.headers()
                .firstValue(HeaderNames.CONTENT_TYPE_NAME)
                .map(type -> type.toLowerCase(Locale.ROOT).startsWith("text/event-stream"))
                .orElse(false);
    }

    /** The message of an error body, or nothing. */
    private static String reason(byte[] body) {
        try {
            JsonNode json = Json.read(body);
            String message =
                    json.path("error").path("message").asText(json.path("message").asText());
            return message.substring(0, Math.min(message.length(), MAX_REASON_CHARS));
        } catch (IOException e) {
            return "";
        }
    }
}
