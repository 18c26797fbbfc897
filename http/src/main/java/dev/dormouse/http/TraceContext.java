package dev.dormouse.http;

import io.helidon.http.HeaderName;
import io.helidon.http.HeaderNames;
import io.helidon.http.Headers;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The trace that a request belongs to, as <a href="https://www.w3.org/TR/trace-context/">W3C Trace
 * Context</a> tells it and OpenTelemetry's clients send it.
 */
public final class TraceContext {
    private static final HeaderName TRACE_PARENT = HeaderNames.create("traceparent");

    /** Version, trace id, parent id, flags; later versions may add to them. */
    private static final Pattern VALUE =
            Pattern.compile("(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*");

    private TraceContext() {}

    /** The trace's id, 32 hexadecimal digits; none if the request tells none in its right form. */
    public static Optional<String> traceId(Headers headers) {
        return headers.first(TRACE_PARENT)
                .map(VALUE::matcher)
                .filter(Matcher::matches)
                .map(matcher -> matcher.group(1));
    }
}
