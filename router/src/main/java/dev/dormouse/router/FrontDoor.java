package dev.dormouse.router;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.router.routing.ApiError;
import dev.dormouse.router.routing.Outcome;
import io.helidon.http.HeaderNames;
import io.helidon.http.HttpException;
import io.helidon.http.Method;
import io.helidon.http.RequestException;
import io.helidon.http.Status;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Takes every request to the handler of its path. The list of paths is the whole surface: what is
 * not on it, such as an engine's {@code /sleep}, does not exist here. Thread-safe.
 */
final class FrontDoor implements Handler {
    private static final Logger LOGGER = System.getLogger("dormouse.router");

    /** The only paths with a variable part. */
    private static final String ONE_MODEL = Endpoint.MODELS.path() + "/";

    private final Map<String, Route> routes;

    /** A path's only method and what serves it. */
    record Route(Method method, Handler handler) {}

    FrontDoor(Map<String, Route> routes) {
        this.routes = Map.copyOf(routes);
    }

    @Override
    public void handle(ServerRequest request, ServerResponse response) {
        ClientConnection.CURRENT.get().requestBegins(request, response);
        try {
            dispatch(request, response);
        } catch (RequestException | HttpException | CloseConnectionException e) {
            throw e;
        } catch (Exception e) {
            LOGGER.log(Level.ERROR, "request failed unexpectedly", e);
            if (response.isSent() || response.bytesWritten() > 0) {
                throw new AbruptEnd(Outcome.FAILED, "failed in the middle of an answer");
            }
            ErrorAnswer.send(
                    ApiError.of(500, "internal_error", "the router failed; see its log"), response);
        }
    }

    private void dispatch(ServerRequest request, ServerResponse response) throws Exception {
        Method method = request.prologue().method();
        String path = request.prologue().uriPath().path();
        @Nullable Route route =
                routes.get(path.startsWith(ONE_MODEL) ? Endpoint.MODELS.path() : path);
        if (route == null) {
            refuse(method, ApiError.of(404, "not_found", "no such path: " + path), response);
        } else if (!method.equals(route.method())) {
            response.header(HeaderNames.ALLOW, route.method().text());
            String message = path + " takes " + route.method().text() + " only";
            refuse(method, ApiError.of(405, "method_not_allowed", message), response);
        } else {
            route.handler().handle(request, response);
        }
    }

    private static void refuse(Method method, ApiError error, ServerResponse response) {
        if (method.equals(Method.HEAD)) {
            response.status(Status.create(error.status())).send();
        } else {
            ErrorAnswer.send(error, response);
        }
    }
}
