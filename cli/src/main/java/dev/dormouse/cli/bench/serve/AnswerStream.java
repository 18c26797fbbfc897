package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Json;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The server-sent events of one completion, read piece by piece, wherever the network cuts them.
 * Used by one thread.
 *
 * <p>As in {@code vllm bench serve}, every event with a choice brings a token or more and has a
 * time; here, one that has no text and only tells the end does not count.
 */
final class AnswerStream {
    /** No event of a completion is nearly as long. */
    private static final int MAX_LINE_BYTES = 1 << 20;

    private final long sentNanos;
    private final List<Long> gapNanos = new ArrayList<>();
    private byte[] line = new byte[1024];
    private int lineBytes;
    private long firstNanos;
    private long lastNanos;
    private boolean begun;
    private boolean done;
    private @Nullable JsonNode usage;
    private @Nullable String failure;

    /** The answer to a request that was sent then. */
    AnswerStream(long sentNanos) {
        this.sentNanos = sentNanos;
    }

    /** Takes the next bytes, which came at {@code nowNanos}. */
    void accept(byte[] bytes, int length, long nowNanos) {
        for (int i = 0; i < length && failure == null; i++) {
            if (bytes[i] == '\n') {
                endLine(nowNanos);
            } else if (lineBytes == MAX_LINE_BYTES) {
                failure = "an event has more than " + MAX_LINE_BYTES + " bytes";
            } else {
                if (lineBytes == line.length) {
                    line = Arrays.copyOf(line, 2 * lineBytes);
                }
                line[lineBytes++] = bytes[i];
            }
        }
    }

    /** What it was, now that nothing more comes. */
    Answer end() {
        if (failure == null) {
            failure = incomplete();
        }
        if (failure != null || usage == null) {
            return new Answer.Failed(String.valueOf(failure));
        }
        return new Answer.Served(
                usage.path("prompt_tokens").intValue(),
                usage.path("completion_tokens").intValue(),
                firstNanos - sentNanos,
                gapNanos,
                lastNanos - sentNanos);
    }

    private @Nullable String incomplete() {
        if (!done) {
            return "the stream ended early";
        }
        if (!begun) {
            return "the stream brought no token";
        }
        return usage == null ? "the server did not tell the usage, which counts the tokens" : null;
    }

    private void endLine(long nowNanos) {
        String text = new String(line, 0, lineBytes, StandardCharsets.UTF_8);
        lineBytes = 0;
        if (!text.startsWith("data:")) {
            return;
        }
        String data = text.substring("data:".length()).strip();
        if (data.equals("[DONE]")) {
            done = true;
            return;
        }
        try {
            event(Json.MAPPER.readTree(data), nowNanos);
        } catch (JsonProcessingException e) {
            failure = "an event is not JSON: " + e.getOriginalMessage();
        }
    }

    private void event(JsonNode event, long nowNanos) {
        if (event.hasNonNull("error")) {
            JsonNode error = event.get("error");
            failure = error.path("message").asText(error.toString());
            return;
        }
        JsonNode told = event.path("usage");
        if (told.path("completion_tokens").isInt() && told.path("prompt_tokens").isInt()) {
            usage = told;
        }
        JsonNode choice = event.path("choices").path(0);
        boolean onlyEnds =
                choice.hasNonNull("finish_reason") && choice.path("text").asText().isEmpty();
        if (!choice.isObject() || onlyEnds) {
            return;
        }
        if (begun) {
            gapNanos.add(nowNanos - lastNanos);
        } else {
            begun = true;
            firstNanos = nowNanos;
        }
        lastNanos = nowNanos;
    }
}
