package dev.dormouse.router;

import dev.dormouse.http.ClientConnection;
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

    /** The same request for {@code engine}, still without method and body. */
    HttpRequest.Builder requestTo(Engine engine) {
        return headers.addTo(HttpRequest.newBuilder(engine.resolve(path)));
    }

    /** A POST of JSON to {@code engine}. */
    HttpRequest.Builder postTo(Engine engine, byte[] json) {
        return requestTo(engine)
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(json));
    }
}
