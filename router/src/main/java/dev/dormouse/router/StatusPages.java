package dev.dormouse.router;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.EnginePool;
import dev.dormouse.router.routing.Json;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;

/** The router's own state for operators. Thread-safe. */
final class StatusPages {
    private final EnginePool prefill;
    private final EnginePool decode;
    private final RouterMetrics metrics;

    StatusPages(EnginePool prefill, EnginePool decode, RouterMetrics metrics) {
        this.prefill = prefill;
        this.decode = decode;
        this.metrics = metrics;
    }

    /** Readiness: 200 if a request could be served, else 503; each engine's state either way. */
    void health(ServerRequest request, ServerResponse response) {
        boolean ready = prefill.ready() && decode.ready();
        ObjectNode body = Json.object();
        body.put("status", ready ? "ok" : "unavailable");
        ArrayNode engines = body.putArray("engines");
        prefill.engines().forEach(engine -> engines.add(describe(engine)));
        decode.engines().forEach(engine -> engines.add(describe(engine)));
        response.status(ready ? Status.OK_200 : Status.SERVICE_UNAVAILABLE_503);
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(Json.write(body));
    }

    /** Liveness: 200 as long as the router answers at all. */
    void live(ServerRequest request, ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(Json.write(Json.object().put("status", "ok")));
    }

    /** Metrics in Prometheus' text format. */
    void metrics(ServerRequest request, ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
        response.send(metrics.scrape());
    }

    private static ObjectNode describe(Engine engine) {
        Engine.Health health = engine.health();
        return Json.object()
                .put("engine", engine.name())
                .put("healthy", health.alive())
                .put("ready", health.ready())
                .put("detail", health.detail());
    }
}
