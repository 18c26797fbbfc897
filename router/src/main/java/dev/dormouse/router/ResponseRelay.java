package dev.dormouse.router;

import com.fasterxml.jackson.databind.JsonNode;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
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
     * Answers the client with an engine's answer. Success and 4xx pass as they are; another status
     * becomes an {@link ApiError}.
     *
     * @throws UpstreamFailure if the engine fails before a byte has gone to the client
     * @throws AbruptEnd if the answer cannot be brought to an end any more
     */
    Outcome relay(Leg leg, UpstreamCall call, HttpResponse<?> head, ServerResponse response)
            throws UpstreamFailure {
        Outcome outcome = Outcome.ofStatus(head.statusCode());
        if (outcome == Outcome.FAILED) {
            return sendFailure(leg, call, head, response);
        }
        if (outcome == Outcome.REJECTED) {
            response.header(ApiError.FAILED_LEG, leg.role().label());
        }
        byte[] buffer = new byte[BUFFER_BYTES];
        int count = call.read(buffer, leg.timeout());
        response.status(Status.create(head.statusCode()));
        ForwardedHeaders.copyAnswer(head.headers(), response.headers());
        if (count < 0) {
            call.settle(outcome);
            response.send();
            return outcome;
        }
        if (leg.role() == Role.DECODE && outcome == Outcome.OK) {
            metrics.firstByte(call.start());
        }
        return eventStream(head)
                ? relayEvents(leg.timeout(), call, buffer, count, outcome, response.outputStream())
                : relayBytes(leg.timeout(), call, buffer, count, outcome, head, response);
    }

    private static Outcome sendFailure(
            Leg leg, UpstreamCall call, HttpResponse<?> head, ServerResponse response)
            throws UpstreamFailure {
        byte[] body = call.readUpTo(MAX_REASON_BYTES, leg.timeout());
        call.settle(Outcome.FAILED);
        ApiError.ofStatus(
                        leg.role(),
                        head.statusCode(),
                        reason(body),
                        head.headers().firstValue("retry-after").orElse(null))
                .send(response);
        return Outcome.FAILED;
    }

    private static Outcome relayBytes(
            Duration timeout,
            UpstreamCall call,
            byte[] buffer,
            int firstCount,
            Outcome outcome,
            HttpResponse<?> head,
            ServerResponse response) {
        head.headers().firstValueAsLong("content-length").ifPresent(response::contentLength);
        OutputStream out = response.outputStream();
        int count = firstCount;
        while (count >= 0) {
            write(out, buffer, count);
            try {
                count = call.read(buffer, timeout);
            } catch (UpstreamFailure e) {
                throw new AbruptEnd(e.outcome(), e.detail());
            }
        }
        call.settle(outcome);
        return outcome;
    }

    private static Outcome relayEvents(
            Duration timeout,
            UpstreamCall call,
            byte[] buffer,
            int firstCount,
            Outcome outcome,
            OutputStream out) {
        SseTail tail = new SseTail();
        int count = firstCount;
        try {
            while (count >= 0) {
                write(out, buffer, count);
                tail.add(buffer, count);
                count = call.read(buffer, timeout);
            }
            if (outcome == Outcome.OK && !tail.done()) {
                throw call.fail(Outcome.BROKEN, timeout);
            }
        } catch (UpstreamFailure e) {
            return endBrokenStream(call, tail, e, out);
        }
        call.settle(outcome);
        return outcome;
    }

    /** An error event and a proper end if no event is cut in half; no {@code [DONE]} either way. */
    private static Outcome endBrokenStream(
            UpstreamCall call, SseTail tail, UpstreamFailure failure, OutputStream out) {
        if (failure.outcome() == Outcome.CANCELLED || !tail.betweenEvents()) {
            throw new AbruptEnd(failure.outcome(), failure.detail());
        }
        byte[] error = ApiError.of(call.engine().role(), failure).toBytes();
        String event = "data: " + new String(error, StandardCharsets.UTF_8) + "\n\n";
        byte[] bytes = event.getBytes(StandardCharsets.UTF_8);
        write(out, bytes, bytes.length);
        return failure.outcome();
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
