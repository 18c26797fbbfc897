package dev.dormouse.router;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.TimeLimits;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.Outcome;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * One exchange with one engine. Used by one thread; {@link #abort} comes from any.
 *
 * <p>The call counts as in flight until it is settled: by a failure, by {@link #settle}, or by
 * {@link #close}, which drops the connection if the answer was not read to its end.
 */
final class UpstreamCall implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.router");

    private final Engine engine;
    private final TimeLimits limits;
    private final Duration timeout;
    private final RouterMetrics metrics;
    private final RouterMetrics.LegStart start;
    private final ClientConnection client;
    private final CompletableFuture<HttpResponse<InputStream>> answer;
    private final AtomicReference<@Nullable Outcome> aborted = new AtomicReference<>();
    private final Object head = new Object();
    private boolean headArrived; // under head
    private volatile @Nullable InputStream body;
    private boolean settled;

    /**
     * Sends {@code request}; the call is aborted when {@code client} leaves, or when a wait for
     * bytes takes longer than {@code timeout}.
     */
    UpstreamCall(
            Engine engine,
            Endpoint endpoint,
            HttpRequest request,
            HttpClient http,
            TimeLimits limits,
            Duration timeout,
            RouterMetrics metrics,
            ClientConnection client) {
        this.engine = engine;
        this.limits = limits;
        this.timeout = timeout;
        this.metrics = metrics;
        this.client = client;
        this.start = metrics.legStarted(engine.role(), endpoint);
        this.answer =
                http.sendAsync(
                        request,
                        _ -> {
                            synchronized (head) {
                                headArrived = true;
                            }
                            return HttpResponse.BodySubscribers.ofInputStream();
                        });
        client.whenGone(() -> abort(Outcome.CANCELLED));
    }

    Engine engine() {
        return engine;
    }

    RouterMetrics.LegStart start() {
        return start;
    }

    /**
     * Waits for status and headers.
     *
     * @throws UpstreamFailure if none come in time; the call is then settled
     */
    HttpResponse<InputStream> awaitHead() throws UpstreamFailure {
        try (var _ = limits.start(timeout, () -> abort(Outcome.TIMED_OUT))) {
            HttpResponse<InputStream> head = answer.get();
            body = head.body();
            Outcome reason = aborted.get();
            if (reason != null) {
                throw fail(reason);
            }
            return head;
        } catch (CancellationException e) {
            throw fail(abortReason());
        } catch (ExecutionException e) {
            Outcome reason = aborted.get();
            throw reason == null ? fail(outcomeOf(e.getCause()), e.getCause()) : fail(reason);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw fail(Outcome.CANCELLED);
        }
    }

    /**
     * Reads the next piece of the body as soon as there is one.
     *
     * @return number of bytes, or -1 at the end
     * @throws UpstreamFailure if the engine breaks off or stays silent
     */
    int read(byte[] into) throws UpstreamFailure {
        return within(stream -> stream.read(into));
    }

    /**
     * Reads at most {@code maxBytes} of the body.
     *
     * @throws UpstreamFailure if the engine breaks off or is not done in time
     */
    byte[] readUpTo(int maxBytes) throws UpstreamFailure {
        return within(stream -> stream.readNBytes(maxBytes));
    }

    /** Something that reads the body. */
    @FunctionalInterface
    private interface Reading<T> {
        T from(InputStream stream) throws IOException;
    }

    private <T> T within(Reading<T> reading) throws UpstreamFailure {
        InputStream stream = body;
        if (stream == null) {
            throw new IllegalStateException("body read before its head: " + engine.name());
        }
        T result;
        try (var _ = limits.start(timeout, () -> abort(Outcome.TIMED_OUT))) {
            result = reading.from(stream);
        } catch (IOException e) {
            Outcome reason = aborted.get();
            throw reason == null ? fail(Outcome.BROKEN, e) : fail(reason);
        }
        // A stream closed by abort must not pass as one that ended.
        Outcome reason = aborted.get();
        if (reason != null) {
            throw fail(reason);
        }
        return result;
    }

    /** Breaks the exchange off; the thread that uses it fails with {@code reason}. */
    void abort(Outcome reason) {
        if (aborted.compareAndSet(null, reason)) {
            drop();
        }
    }

    /** Ends the call; only the first time counts. */
    void settle(Outcome outcome) {
        if (settled) {
            return;
        }
        settled = true;
        client.forgetWhenGone();
        drop();
        metrics.legEnded(engine, outcome, start);
    }

    @Override
    public void close() {
        settle(Outcome.CANCELLED);
    }

    /** Settles the call as failed. */
    UpstreamFailure fail(Outcome outcome) {
        String what = engine.role().label() + " engine ";
        String detail =
                switch (outcome) {
                    case UNREACHABLE -> what + "could not be reached";
                    case TIMED_OUT -> what + "was silent for " + timeout;
                    case CANCELLED -> what + "was not waited for";
                    case OK, REJECTED, FAILED, BROKEN -> what + "broke the connection off";
                };
        settle(outcome);
        return new UpstreamFailure(outcome, detail);
    }

    /** As above; the log says why, unless health checks do. */
    private UpstreamFailure fail(Outcome outcome, @Nullable Throwable cause) {
        if (outcome == Outcome.BROKEN) {
            LOGGER.log(
                    Level.WARNING, "connection lost: engine={0} cause={1}", engine.name(), cause);
        }
        return fail(outcome);
    }

    private Outcome abortReason() {
        Outcome reason = aborted.get();
        return reason == null ? Outcome.CANCELLED : reason;
    }

    /**
     * Drops what is still to come. Cancelling closes the connection, also if it has brought the
     * whole answer meanwhile and carries another client's request by now; so that is done only as
     * long as no head has arrived.
     */
    private void drop() {
        synchronized (head) {
            if (!headArrived) {
                answer.cancel(true);
                return;
            }
        }
        var _ = answer.thenAccept(response -> close(response.body()));
    }

    private static void close(InputStream body) {
        try {
            body.close();
        } catch (IOException e) {
            // The connection is dropped in any case, and nobody reads this stream again.
        }
    }

    private static Outcome outcomeOf(@Nullable Throwable cause) {
        return switch (cause) {
            case HttpConnectTimeoutException _, ConnectException _, NoRouteToHostException _ ->
                    Outcome.UNREACHABLE;
            case null, default -> Outcome.BROKEN;
        };
    }
}
