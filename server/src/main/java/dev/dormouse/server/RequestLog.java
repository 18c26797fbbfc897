package dev.dormouse.server;

import dev.dormouse.http.TraceContext;
import io.helidon.webserver.http.ServerRequest;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Locale;
import java.util.function.LongSupplier;

/**
 * The log's line about one completion.
 *
 * @param path the endpoint
 * @param requestId the client's name of the request, or ours
 * @param trace the trace that it belongs to, or {@code -}
 */
record RequestLog(
        String path, String requestId, String trace, long startNanos, LongSupplier nanoClock) {
    private static final Logger LOGGER = System.getLogger("dormouse.server");

    static RequestLog begin(ServerRequest request, String requestId, LongSupplier nanoClock) {
        return new RequestLog(
                request.path().path(),
                requestId,
                TraceContext.traceId(request.headers()).orElse("-"),
                nanoClock.getAsLong(),
                nanoClock);
    }

    /** {@code outcome} is a finish reason, an error's code, or the like. */
    void ended(String outcome) {
        LOGGER.log(Level.INFO, () -> line(outcome));
    }

    String line(String outcome) {
        return String.format(
                Locale.ROOT,
                "request ended: request=%s path=%s outcome=%s seconds=%.3f trace=%s",
                requestId,
                path,
                outcome,
                (nanoClock.getAsLong() - startNanos) / 1e9,
                trace);
    }
}
