package dev.dormouse.router;

import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Headers;
import io.helidon.http.ServerResponseHeaders;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The headers of a client's request that both legs carry: all end-to-end headers, {@code
 * Authorization} among them. Immutable.
 *
 * <p>Not carried: the hop-by-hop headers of RFC 9110 section 7.6.1 with those that {@code
 * Connection} names, framing headers, and {@code Accept-Encoding} and {@code Content-Encoding},
 * because the router reads the bodies.
 */
final class ForwardedHeaders {
    /** Pairs a client's request with the work on both engines. */
    static final String REQUEST_ID = "x-request-id";

    private static final Set<String> HOP_BY_HOP =
            Set.of(
                    "connection",
                    "keep-alive",
                    "proxy-authenticate",
                    "proxy-authorization",
                    "proxy-connection",
                    "te",
                    "trailer",
                    "transfer-encoding",
                    "upgrade",
                    "http2-settings");
    private static final Set<String> SET_BY_ROUTER =
            Set.of(
                    "host",
                    "expect",
                    "content-length",
                    "content-type",
                    "content-encoding",
                    "accept-encoding",
                    REQUEST_ID);
    private static final Set<String> NOT_RETURNED = Set.of("content-length", "date", REQUEST_ID);

    private record Entry(String name, String value) {}

    private final List<Entry> entries;
    private final String requestId;

    private ForwardedHeaders(List<Entry> entries, String requestId) {
        this.entries = entries;
        this.requestId = requestId;
    }

    /**
     * Those of {@code client} that go on, with {@code requestId} as {@code X-Request-Id}.
     *
     * @throws IllegalArgumentException if a name or value is not legal in HTTP
     */
    static ForwardedHeaders of(Headers client, String requestId) {
        Set<String> named = connectionTokens(client.values(HeaderNames.CONNECTION));
        List<Entry> entries = new ArrayList<>();
        for (Header header : client) {
            String name = header.name().toLowerCase(Locale.ROOT);
            if (!HOP_BY_HOP.contains(name)
                    && !SET_BY_ROUTER.contains(name)
                    && !named.contains(name)) {
                header.allValues().forEach(value -> entries.add(new Entry(name, value)));
            }
        }
        ForwardedHeaders headers = new ForwardedHeaders(List.copyOf(entries), requestId);
        headers.addTo(HttpRequest.newBuilder());
        return headers;
    }

    /** Adds them to a request for an engine. */
    HttpRequest.Builder addTo(HttpRequest.Builder request) {
        entries.forEach(entry -> request.header(entry.name(), entry.value()));
        return request.header(REQUEST_ID, requestId);
    }

    /** Copies what of an engine's answer the client gets to see. */
    static void copyAnswer(HttpHeaders engine, ServerResponseHeaders client) {
        Set<String> named = connectionTokens(engine.allValues("connection"));
        for (Map.Entry<String, List<String>> header : engine.map().entrySet()) {
            String name = header.getKey().toLowerCase(Locale.ROOT);
            if (!HOP_BY_HOP.contains(name)
                    && !NOT_RETURNED.contains(name)
                    && !named.contains(name)) {
                client.set(HeaderValues.create(header.getKey(), header.getValue()));
            }
        }
    }

    private static Set<String> connectionTokens(List<String> values) {
        Set<String> tokens = new HashSet<>();
        for (String value : values) {
            for (String token : value.split(",", -1)) {
                tokens.add(token.strip().toLowerCase(Locale.ROOT));
            }
        }
        return tokens;
    }
}
