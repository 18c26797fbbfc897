package dev.dormouse.http;

import io.helidon.http.Headers;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Locale;
import java.util.function.LongSupplier;

/**
 * The log's line about one completion. Thread-safe.
 *
 * @param path the endpoint
 * @param requestId the client's name of the request, or ours
 * @param trace the trace that it belongs to, or {@code -}
 */
public record RequestLog(
        Logger logger,
        String path,
        String requestId,
        String trace,
        long startNanos,
        LongSupplier nanoClock) {
    /**
     * The request has come.
     *
     * @param nanoClock as {@link System#nanoTime}
     */
    public static RequestLog begin(
            Logger logger, String path, String requestId, Headers headers, LongSupplier nanoClock) {
        return new RequestLog(
                logger,
                path,
                requestId,
                TraceContext.traceId(headers).orElse("-"),
                nanoClock.getAsLong(),
                nanoClock);
    }

    /** The request has ended; {@code outcome} is a finish reason, an error's code, or the like. */
    public void ended(String outcome) {
        logger.log(Level.INFO, () -> line(outcome));
    }

    /** What is logged. */
    public String line(String outcome) {
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
