package dev.dormouse.http;

import io.helidon.webserver.WebServer;
import io.helidon.webserver.WebServerConfig;
import io.helidon.webserver.http.HttpRouting;
import java.time.Duration;

/** One bound address of a server, with what is the same for each. Thread-safe. */
public final class HttpListener implements AutoCloseable {
    private final WebServer server;

    private HttpListener(WebServer server) {
        this.server = server;
    }

    /**
     * What to bind.
     *
     * @param port 0 takes a free one
     * @param options the options that name host and port, for messages
     */
    public record Address(String host, int port, String options) {}

    /**
     * Routes to be filled. Makes Helidon discover no services in this process, see {@link
     * HelidonServices}; an application that wants its own of Helidon's uses Helidon first.
     */
    public static HttpRouting.Builder routing() {
        HelidonServices.discoverNone();
        return HttpRouting.builder();
    }

    /**
     * Binds, and serves.
     *
     * @param maxBodyBytes a longer request is refused
     * @param limits stays the caller's, which closes it after the listener
     * @param clientTimeout bounds every wait for a client, see {@link ClientConnections}
     * @param routing from {@link #routing()}
     * @throws IllegalStateException if the address cannot be bound, or the process may open too few
     *     descriptors; the message names it
     */
    public static HttpListener start(
            Address address,
            long maxBodyBytes,
            TimeLimits limits,
            Duration clientTimeout,
            HttpRouting.Builder routing) {
        WebServer server =
                settings(address, maxBodyBytes, limits, clientTimeout, routing).build().start();
        if (!server.isRunning()) { // Helidon logs the cause and says nothing else
            server.stop();
            throw new IllegalStateException(
                    "cannot listen on "
                            + address.host()
                            + " port "
                            + address.port()
                            + ": the port is in use or the host is not this machine's; change "
                            + address.options());
        }
        return new HttpListener(server);
    }

    /**
     * Loads much of what the first listener of a process needs; binds nothing and leaves no thread.
     * That takes a good part of the process's start, so it can be done beside the rest.
     */
    public static void prepare() {
        try (TimeLimits limits = new TimeLimits()) {
            var _ =
                    settings(
                                    new Address("127.0.0.1", 0, ""),
                                    1,
                                    limits,
                                    Duration.ofSeconds(1),
                                    routing())
                            .buildPrototype(); // a server would start a timer's thread
        }
    }

    private static WebServerConfig.Builder settings(
            Address address,
            long maxBodyBytes,
            TimeLimits limits,
            Duration clientTimeout,
            HttpRouting.Builder routing) {
        ClientConnections connections = new ClientConnections(limits, clientTimeout);
        return WebServer.builder()
                .host(address.host())
                .port(address.port())
                .shutdownHook(false)
                .protocolsDiscoverServices(false)
                .addConnectionSelector(connections)
                // Without it a small piece waits for the client's delayed acknowledgement.
                .connectionOptions(connection -> connection.tcpNoDelay(true))
                // Answers are written in pieces that are to go out at once.
                .writeBufferSize(0)
                .maxPayloadSize(maxBodyBytes)
                .maxTcpConnections(connections.mostAccepted())
                .directHandlers(Refusals.handlers())
                .routing(routing);
    }

    /** The port that is bound. */
    public int port() {
        return server.port();
    }

    /** Breaks off what is served, and unbinds. Idempotent. */
    @Override
    public void close() {
        server.stop();
    }
}
