package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import io.helidon.http.HeaderNames;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Server-sent events, each flushed at once. The answer's head goes out with the first one. */
final class EventStream {
    private final OutputStream out;

    private EventStream(OutputStream out) {
        this.out = out;
    }

    static EventStream open(ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "text/event-stream; charset=utf-8");
        response.header(HeaderNames.CACHE_CONTROL, "no-cache");
        return new EventStream(response.outputStream());
    }

    /**
     * Sends one event.
     *
     * @throws UncheckedIOException if the client has left
     */
    void send(JsonNode data) {
        write(data.toString());
    }

    /** Sends the mark of a complete stream, and ends it. */
    void done() {
        write("[DONE]");
        close();
    }

    /** Ends the stream without the mark: it is not complete. */
    void close() {
        try {
            out.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void write(String data) {
        try {
            out.write(("data: " + data + "\n\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
