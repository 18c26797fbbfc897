package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState.Phase;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerResponse;
import java.util.function.BooleanSupplier;

/** How an engine is, for orchestrators, routers and monitors. */
final class StatusRoutes {
    private final Engine engine;
    private final ServerMetrics metrics;
    private final BooleanSupplier admitting;

    /**
     * Answers about this engine.
     *
     * @param admitting whether the server takes requests; it does not once it is about to end
     */
    StatusRoutes(Engine engine, ServerMetrics metrics, BooleanSupplier admitting) {
        this.engine = engine;
        this.metrics = metrics;
        this.admitting = admitting;
    }

    void addTo(Paths paths) {
        paths.get("/health", (request, response) -> health(response, healthy()));
        paths.get("/ping", (request, response) -> health(response, healthy()));
        paths.post("/ping", (request, response) -> health(response, healthy()));
        paths.get("/ready", (request, response) -> health(response, ready()));
        paths.get("/metrics", (request, response) -> metrics(response));
    }

    /** Alive: a sleeping engine is, and must not be restarted for it. */
    private boolean healthy() {
        Phase phase = engine.state().phase();
        return phase != Phase.FAILED && phase != Phase.CLOSED;
    }

    /** Would answer a request now. */
    private boolean ready() {
        return admitting.getAsBoolean()
                && engine.state().phase() == Phase.AWAKE
                && !engine.state().paused();
    }

    private void health(ServerResponse response, boolean good) {
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", good ? "ok" : "unavailable");
        answer.put("phase", ControlHandlers.phase(engine.state()));
        response.status(good ? Status.OK_200 : Status.SERVICE_UNAVAILABLE_503);
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(answer.toString());
    }

    private void metrics(ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
        response.send(metrics.scrape());
    }
}
