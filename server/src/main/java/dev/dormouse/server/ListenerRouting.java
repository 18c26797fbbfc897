package dev.dormouse.server;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.HttpListener;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.function.Consumer;

/** How each of a server's listeners comes from a request to its answer. */
final class ListenerRouting {
    private static final Logger LOGGER = System.getLogger("dormouse.server");

    private ListenerRouting() {}

    /**
     * The routing.
     *
     * @param keys what opens the paths that begin with {@code guarded}
     * @param filling adds the paths
     */
    static HttpRouting.Builder of(ApiKeys keys, String guarded, Consumer<Paths> filling) {
        HttpRouting.Builder routing = HttpListener.routing();
        Paths paths = new Paths(routing, keys, guarded);
        routing.addFilter(
                (chain, request, response) -> {
                    ClientConnection.CURRENT.get().requestBegins(request, response);
                    chain.proceed();
                });
        filling.accept(paths);
        return routing.any(paths::refuse)
                .error(
                        ApiException.class,
                        (request, response, error) -> Answers.send(response, error))
                .error(Exception.class, ListenerRouting::unexpected);
    }

    private static void unexpected(
            ServerRequest request, ServerResponse response, Exception error) {
        if (error instanceof io.helidon.http.HttpException http) {
            Answers.send(
                    response,
                    ApiException.of(
                            http.status().code(), "http_error", String.valueOf(http.getMessage())));
            return;
        }
        LOGGER.log(Level.ERROR, "request failed: path=" + request.path().path(), error);
        Answers.send(
                response,
                ApiException.of(500, "internal_error", "the server failed; its log has the cause"));
    }
}
