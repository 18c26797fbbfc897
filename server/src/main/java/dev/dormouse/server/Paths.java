package dev.dormouse.server;

import io.helidon.http.HeaderNames;
import io.helidon.http.Method;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The paths of a server, and what is said to a request for none of them. Filled by one thread. */
final class Paths {
    private final HttpRouting.Builder routing;
    private final ApiKeys keys;
    private final String guarded;
    private final Map<String, Set<String>> methods = new TreeMap<>();

    /**
     * No path yet.
     *
     * @param keys what opens the paths that begin with {@code guarded}
     */
    Paths(HttpRouting.Builder routing, ApiKeys keys, String guarded) {
        this.routing = routing;
        this.keys = keys;
        this.guarded = guarded;
    }

    void get(String path, Handler handler) {
        add(Method.GET, path, handler);
    }

    void post(String path, Handler handler) {
        add(Method.POST, path, handler);
    }

    void add(Method method, String path, Handler handler) {
        // Here, since the path that a filter sees is not always the one that was matched.
        routing.route(
                method,
                path,
                (request, response) -> {
                    if (path.startsWith(guarded)) {
                        keys.require(request.headers());
                    }
                    handler.handle(request, response);
                });
        methods.computeIfAbsent(path, _ -> new TreeSet<>()).add(method.text());
    }

    /** Answers 405 if the path exists with another method, else 404. */
    void refuse(ServerRequest request, ServerResponse response) {
        String path = request.path().path();
        Set<String> allowed = methods.getOrDefault(path, Set.of());
        if (allowed.isEmpty()) {
            String what = request.prologue().method().text() + " " + path;
            throw ApiException.of(404, "not_found", what + " does not exist here");
        }
        String list = String.join(", ", allowed);
        response.header(HeaderNames.ALLOW, list);
        throw ApiException.of(405, "method_not_allowed", path + " takes " + list + " only");
    }
}
