package dev.dormouse.router;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.http.ClientConnection;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.Json;
import dev.dormouse.router.routing.Role;
import dev.dormouse.router.routing.Step;
import io.helidon.webserver.http.ServerResponse;
import java.net.http.HttpRequest;

/**
 * A client's request on its way through the router.
 *
 * @param endpoint what it asks for
 * @param path the path on an engine
 * @param client whom it came from
 * @param headers what goes on to the engines
 * @param response where the answer goes
 */
record Exchange(
        Endpoint endpoint,
        String path,
        ClientConnection client,
        ForwardedHeaders headers,
        ServerResponse response) {

    /** The request for the engine that is to be asked. */
    HttpRequest requestFor(Step.Ask ask) {
        Engine engine = ask.engine();
        HttpRequest.Builder request = headers.addTo(HttpRequest.newBuilder(engine.resolve(path)));
        ObjectNode body = ask.body();
        if (body != null) {
            request.header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(Json.write(body)));
        }
        if (engine.role() == Role.PREFILL) {
            request.setHeader("accept", "application/json");
        }
        return request.build();
    }
}
