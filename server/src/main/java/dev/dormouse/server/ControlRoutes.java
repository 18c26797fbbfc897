package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.http.JsonBodies;
import io.helidon.http.Method;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.ServerRequest;
import java.util.List;

/** The control endpoints as routes of a listener. */
final class ControlRoutes {
    private interface Call {
        ObjectNode make(ControlParameters parameters) throws InterruptedException;
    }

    private record Route(Method method, String path, Call call) {}

    private final List<Route> changes;
    private final List<Route> questions;

    ControlRoutes(ControlHandlers control) {
        changes =
                List.of(
                        new Route(Method.POST, "/sleep", control::sleep),
                        new Route(Method.POST, "/wake_up", control::wake),
                        new Route(
                                Method.POST,
                                "/release_kv_cache_memory",
                                _ -> control.releaseKvCache()),
                        new Route(Method.POST, "/pause", control::pause),
                        new Route(Method.POST, "/resume", _ -> control.resume()),
                        new Route(
                                Method.POST,
                                "/reset_prefix_cache",
                                _ -> control.resetPrefixCache()));
        questions =
                List.of(
                        new Route(Method.GET, "/is_sleeping", _ -> control.isSleeping()),
                        new Route(Method.GET, "/is_paused", _ -> control.isPaused()));
    }

    /** The calls that change the engine. */
    void addChanges(Paths paths) {
        changes.forEach(route -> add(paths, route));
    }

    /** The calls that only ask; a router's or an operator's monitor needs no more. */
    void addQuestions(Paths paths) {
        questions.forEach(route -> add(paths, route));
    }

    /** Says of the calls that change the engine where they are taken. */
    void addSignposts(Paths paths) {
        for (Route route : changes) {
            Handler signpost =
                    (request, response) -> {
                        throw ApiException.of(
                                404,
                                "not_found",
                                "%s %s is taken by the admin listener (--admin-port), not here"
                                        .formatted(route.method().text(), route.path()));
                    };
            paths.add(route.method(), route.path(), signpost);
        }
    }

    private static void add(Paths paths, Route route) {
        paths.add(
                route.method(),
                route.path(),
                (request, response) ->
                        Answers.send(response, route.call().make(parameters(request))));
    }

    private static ControlParameters parameters(ServerRequest request) {
        return new ControlParameters(request.query(), JsonBodies.bytes(request));
    }
}
