package dev.dormouse.server;

import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.ClientConnections;
import dev.dormouse.http.Refusals;
import dev.dormouse.http.TimeLimits;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.function.Consumer;

/** One bound address of a server, with what is the same for each. */
final class Listener implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.server");

    /**
     * For the next request on a connection too, so well above the time that clients keep idle
     * connections, the JDK's 30 s: one that is closed under a request would lose it.
     */
    private static final Duration CLIENT_TIMEOUT = Duration.ofMinutes(5);

    private final WebServer server;

    private Listener(WebServer server) {
        this.server = server;
    }

    /**
     * Binds, and serves.
     *
     * @param options the options that name host and port, for messages
     * @param keys what opens the paths that begin with {@code guarded}
     * @param filling adds the paths
     * @throws IllegalStateException if the address cannot be bound; the message names it
     */
    static Listener start(
            String host,
            int port,
            String options,
            long maxBodyBytes,
            TimeLimits limits,
            ApiKeys keys,
            String guarded,
            Consumer<Paths> filling) {
        ClientConnections connections = new ClientConnections(limits, CLIENT_TIMEOUT);
        WebServer server =
                WebServer.builder()
                        .host(host)
                        .port(port)
                        .shutdownHook(false)
                        .protocolsDiscoverServices(false)
                        .addConnectionSelector(connections)
                        .maxTcpConnections(connections.mostAccepted())
                        // Without it a small piece waits for the client's delayed acknowledgement.
                        .connectionOptions(connection -> connection.tcpNoDelay(true))
                        .maxPayloadSize(maxBodyBytes)
                        .directHandlers(Refusals.handlers())
                        .routing(routing(keys, guarded, filling))
                        .build()
                        .start();
        if (!server.isRunning()) { // Helidon logs the cause and says nothing else
            server.stop();
            throw new IllegalStateException(
                    "cannot listen on "
                            + host
                            + " port "
                            + port
                            + ": the port is in use or the host is not this machine's; change "
                            + options);
        }
        return new Listener(server);
    }

    int port() {
        return server.port();
    }

    @Override
    public void close() {
        server.stop();
    }

    private static HttpRouting.Builder routing(
            ApiKeys keys, String guarded, Consumer<Paths> filling) {
        HttpRouting.Builder routing = HttpRouting.builder();
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
                .error(Exception.class, Listener::unexpected);
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
