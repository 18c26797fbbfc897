package dev.dormouse.router;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.TimeLimits;
import java.io.InputStream;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Iterator;
import java.util.function.Function;

/** Asks an engine of one role, by turns. Thread-safe. */
final class Leg {
    private final Role role;
    private final EnginePool pool;
    private final HttpClient http;
    private final TimeLimits limits;
    private final RouterMetrics metrics;
    private final Duration timeout;

    /** {@code timeout} bounds each wait for an engine's bytes. */
    Leg(
            Role role,
            EnginePool pool,
            HttpClient http,
            TimeLimits limits,
            RouterMetrics metrics,
            Duration timeout) {
        this.role = role;
        this.pool = pool;
        this.http = http;
        this.limits = limits;
        this.metrics = metrics;
        this.timeout = timeout;
    }

    /** An engine's status and headers, with the call that still holds its body. */
    record Answer(UpstreamCall call, HttpResponse<InputStream> head) implements AutoCloseable {
        int status() {
            return head.statusCode();
        }

        @Override
        public void close() {
            call.close();
        }
    }

    Role role() {
        return role;
    }

    Duration timeout() {
        return timeout;
    }

    /** The engines for one request, in the order in which to try them. */
    Iterator<Engine> candidates() {
        return pool.candidates().iterator();
    }

    /**
     * Sends a request to the next engine and waits for its head. An engine to which no connection
     * comes up has seen nothing of the request, so the next one gets it; after any other failure
     * none does.
     *
     * @param candidates engines that are left to try; those that were tried are taken away
     * @param request makes the request for a given engine
     * @param client the call is aborted when it leaves
     * @throws UpstreamFailure of the last engine tried
     */
    Answer open(
            Iterator<Engine> candidates,
            Function<Engine, HttpRequest> request,
            Endpoint endpoint,
            ClientConnection client)
            throws UpstreamFailure {
        UpstreamFailure unreachable = null;
        while (candidates.hasNext()) {
            Engine engine = candidates.next();
            if (client.gone()) {
                throw new UpstreamFailure(Outcome.CANCELLED, "the client left");
            }
            UpstreamCall call =
                    new UpstreamCall(
                            engine, endpoint, request.apply(engine), http, limits, metrics, client);
            try {
                return new Answer(call, call.awaitHead(timeout));
            } catch (UpstreamFailure e) {
                if (e.outcome() != Outcome.UNREACHABLE) {
                    throw e;
                }
                engine.health(new Engine.Health(Engine.Readiness.DOWN, "unreachable"));
                unreachable = e;
            }
        }
        if (unreachable == null) {
            throw new IllegalStateException("no " + role.label() + " engine left to try");
        }
        throw unreachable;
    }
}
