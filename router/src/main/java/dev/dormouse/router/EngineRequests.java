package dev.dormouse.router;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.JsonBodies;
import dev.dormouse.http.RequestLog;
import dev.dormouse.http.RequestPlaces;
import dev.dormouse.http.TimeLimits;
import dev.dormouse.router.routing.ApiError;
import dev.dormouse.router.routing.CompletionRequest;
import dev.dormouse.router.routing.EnginePool;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.router.routing.Routing;
import io.helidon.http.HeaderName;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.RequestException;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.lang.System.Logger;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Receives the requests that engines answer: admits them, reads their bodies, gives them an id, and
 * counts how they end. Thread-safe.
 */
final class EngineRequests {
    private static final Logger LOGGER = System.getLogger("dormouse.router");
    private static final HeaderName REQUEST_ID = HeaderNames.create(ForwardedHeaders.REQUEST_ID);

    /** As long as an engine takes them; it would replace a longer one by its own. */
    private static final Pattern LEGAL_REQUEST_ID = Pattern.compile("[\\x21-\\x7e]{1,128}");

    private final EnginePool prefill;
    private final EnginePool decode;
    private final RoutingDriver driver;
    private final RouterMetrics metrics;
    private final TimeLimits limits;
    private final Duration clientTimeout;
    private final boolean forwardLastTurn;
    private final RequestPlaces places;
    private final Supplier<String> freshRequestIds;

    /** {@code freshRequestIds} names the requests whose clients do not. */
    EngineRequests(
            EnginePool prefill,
            EnginePool decode,
            RoutingDriver driver,
            RouterMetrics metrics,
            TimeLimits limits,
            RouterConfig config,
            Supplier<String> freshRequestIds) {
        this.prefill = prefill;
        this.decode = decode;
        this.driver = driver;
        this.metrics = metrics;
        this.limits = limits;
        this.clientTimeout = config.clientTimeout();
        this.forwardLastTurn = config.forwardLastTurn();
        this.places = new RequestPlaces(config.maxRequestsInFlight());
        this.freshRequestIds = freshRequestIds;
    }

    /** Answers a request for {@code endpoint} on the thread of its connection. */
    void handle(Endpoint endpoint, ServerRequest request, ServerResponse response) {
        Outcome outcome = Outcome.FAILED;
        try {
            outcome = admit(endpoint, request, response);
        } catch (RuntimeException e) {
            outcome = outcome(e);
            throw e;
        } finally {
            metrics.requestEnded(endpoint, outcome);
        }
    }

    private static Outcome outcome(RuntimeException failure) {
        return switch (failure) {
            case AbruptEnd end -> end.outcome();
            case CloseConnectionException _ -> Outcome.CANCELLED;
            case RequestException _ -> Outcome.REJECTED;
            default -> Outcome.FAILED;
        };
    }

    /**
     * Takes no new requests from now on, and waits until those that are there are answered.
     *
     * @return false if some are not by the limit
     */
    boolean windDown(Duration limit) throws InterruptedException {
        places.close();
        return places.awaitEmpty(limit);
    }

    /** True once it takes no new requests. */
    boolean isEnding() {
        return places.isClosed();
    }

    private Outcome admit(Endpoint endpoint, ServerRequest request, ServerResponse response) {
        if (places.isClosed()) {
            // Nothing shall be on its way here when the connection ends with the process.
            response.header(HeaderValues.CONNECTION_CLOSE);
            ErrorAnswer.send(
                    new ApiError(
                            503, "router_unavailable", "the router shuts down", null, null, "1"),
                    response);
            return Outcome.FAILED;
        }
        if (!places.tryTake()) {
            ErrorAnswer.send(
                    new ApiError(
                            503, "router_busy", "too many requests in flight", null, null, "1"),
                    response);
            return Outcome.FAILED;
        }
        try {
            String id = request.headers().first(REQUEST_ID).orElseGet(freshRequestIds);
            if (!LEGAL_REQUEST_ID.matcher(id).matches()) {
                return reject(
                        "illegal_request_id",
                        "X-Request-Id must be 1 to 128 visible ASCII characters",
                        response);
            }
            response.header(REQUEST_ID, id);
            ForwardedHeaders headers;
            try {
                headers = ForwardedHeaders.of(request.headers(), id);
            } catch (IllegalArgumentException e) {
                return reject("illegal_header", "illegal header: " + e.getMessage(), response);
            }
            Exchange exchange =
                    new Exchange(
                            endpoint,
                            path(endpoint, request),
                            ClientConnection.CURRENT.get(),
                            headers,
                            response);
            return switch (endpoint) {
                case COMPLETIONS, CHAT_COMPLETIONS -> log(id, request, exchange);
                case MODELS -> driver.serve(Routing.ofQuestion(decode), exchange);
            };
        } finally {
            places.leave();
        }
    }

    /** The endpoint's path, with the name that may follow it as one segment. */
    private static String path(Endpoint endpoint, ServerRequest request) {
        String path = request.prologue().uriPath().path();
        return path.equals(endpoint.path())
                ? path
                : endpoint.path()
                        + "/"
                        + URLEncoder.encode(
                                        path.substring(endpoint.path().length() + 1),
                                        StandardCharsets.UTF_8)
                                .replace("+", "%20")
                                .replace("..", "%2E%2E");
    }

    private Outcome log(String id, ServerRequest request, Exchange exchange) {
        RequestLog log =
                RequestLog.begin(
                        LOGGER,
                        exchange.endpoint().path(),
                        id,
                        request.headers(),
                        System::nanoTime);
        Outcome outcome = Outcome.FAILED;
        try {
            outcome = complete(request, exchange);
        } catch (RuntimeException e) {
            outcome = outcome(e);
            throw e;
        } finally {
            log.ended(outcome.label());
        }
        return outcome;
    }

    private Outcome complete(ServerRequest request, Exchange exchange) {
        @Nullable String refusal = JsonBodies.refusal(request.headers());
        if (refusal != null) {
            return reject("unsupported_media_type", refusal, exchange.response());
        }
        CompletionRequest completion;
        try {
            completion =
                    CompletionRequest.parse(readBody(request, exchange.client()), forwardLastTurn);
        } catch (IOException e) {
            return reject("invalid_json", String.valueOf(e.getMessage()), exchange.response());
        }
        completion.detour().ifPresent(metrics::prefillBypassed);
        return driver.serve(Routing.ofCompletion(completion, prefill, decode), exchange);
    }

    private byte[] readBody(ServerRequest request, ClientConnection client) {
        try (var _ = limits.start(clientTimeout, client::kill)) {
            return JsonBodies.bytes(request);
        }
    }

    private static Outcome reject(String code, String message, ServerResponse response) {
        ErrorAnswer.send(ApiError.of(400, code, message), response);
        return Outcome.REJECTED;
    }
}
