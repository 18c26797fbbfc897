package dev.dormouse.http;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import io.helidon.http.DirectHandler;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Headers;
import io.helidon.http.RequestException;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.ServerRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What is asked of a request's JSON body, and how its faults are told. */
public final class JsonBodies {
    /** How Jackson refers to a place elsewhere in a text that it does not show. */
    private static final Pattern SOURCE =
            Pattern.compile("\\[Source: [^;]*; (line: \\d+, column: \\d+)]");

    private JsonBodies() {}

    /**
     * Why a body with these headers is not taken, or null if it is. A body that does not say what
     * it is passes; one that says it is something else does not: web pages may send forms and plain
     * text anywhere without asking.
     */
    public static @Nullable String refusal(Headers headers) {
        String type = headers.first(HeaderNames.CONTENT_TYPE).orElse("application/json");
        String media = type.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
        return media.equals("application/json") || media.endsWith("+json")
                ? null
                : "Content-Type is " + type + ", but must be application/json";
    }

    /**
     * All bytes of a request's body; none if it has none. Not closed after a failure: that would
     * read a refused body to its end.
     *
     * @throws RequestException if its length is beyond the server's limit, or its chunks are none
     * @throws CloseConnectionException if the client leaves before its end
     */
    public static byte[] bytes(ServerRequest request) {
        if (!request.content().hasEntity()) {
            return new byte[0];
        }
        try {
            return request.content().inputStream().readAllBytes();
        } catch (IOException | UncheckedIOException e) {
            throw new CloseConnectionException("reading the request body failed", e);
        } catch (IllegalArgumentException e) { // how Helidon tells of a chunk without a length
            ClientConnection.CURRENT.get().endAfterBrokenRequest();
            throw RequestException.builder()
                    .type(DirectHandler.EventType.BAD_REQUEST)
                    .message("the body's chunks are malformed: " + e.getMessage())
                    .setKeepAlive(false)
                    .header(HeaderValues.CONNECTION_CLOSE) // keep-alive is not told to the client
                    .cause(e)
                    .build();
        }
    }

    /** What is wrong with a text that is no JSON, and where. */
    public static String fault(JsonProcessingException error) {
        @Nullable JsonLocation at = error.getLocation();
        String place =
                at == null || at.getLineNr() < 1
                        ? ""
                        : " at line " + at.getLineNr() + ", column " + at.getColumnNr();
        return "not valid JSON"
                + place
                + ": "
                + SOURCE.matcher(error.getOriginalMessage()).replaceAll("$1");
    }
}
