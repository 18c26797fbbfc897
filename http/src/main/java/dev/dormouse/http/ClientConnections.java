package dev.dormouse.http;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.concurrency.limits.FixedLimit;
import io.helidon.common.concurrency.limits.Limit;
import io.helidon.common.task.InterruptableTask;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.http1.Http1Config;
import io.helidon.webserver.http1.Http1ConnectionSelector;
import io.helidon.webserver.spi.ServerConnection;
import io.helidon.webserver.spi.ServerConnectionSelector;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Semaphore;

/** Serves HTTP/1.1 over {@link ClientConnection}s. */
public final class ClientConnections implements ServerConnectionSelector {
    private static final Duration LINGER = Duration.ofSeconds(5);
    private static final int ACCEPTED_BEFORE_OTHERS_CLOSE = 8;

    private final ServerConnectionSelector http1 =
            Http1ConnectionSelector.builder().config(Http1Config.create()).build();
    private final TimeLimits limits;
    private final Duration clientTimeout;
    private final OpenConnections open;

    /**
     * For a web server's builder.
     *
     * @param limits stays the caller's, which closes it after the server
     * @param clientTimeout bounds every wait for a client: for its next request, for bytes of a
     *     request, and for room to write
     */
    public ClientConnections(TimeLimits limits, Duration clientTimeout) {
        this(
                limits,
                clientTimeout,
                new OpenConnections(OpenConnections.mostOfThisProcess(), System::nanoTime));
    }

    ClientConnections(TimeLimits limits, Duration clientTimeout, OpenConnections open) {
        this.limits = limits;
        this.clientTimeout = clientTimeout;
        this.open = open;
    }

    /**
     * How many connections the web server must accept at a time, as a bound on descriptors. Fewer
     * are kept: beyond that idle ones are closed.
     */
    public int mostAccepted() {
        return open.most() + ACCEPTED_BEFORE_OTHERS_CLOSE;
    }

    @Override
    public int bytesToIdentifyConnection() {
        return http1.bytesToIdentifyConnection();
    }

    @Override
    public Support supports(BufferData data) {
        return http1.supports(data);
    }

    @Override
    public Set<String> supportedApplicationProtocols() {
        return http1.supportedApplicationProtocols();
    }

    @Override
    public ServerConnection connection(ConnectionContext context) {
        ClientConnection client =
                new ClientConnection(context, limits, clientTimeout, System::nanoTime);
        return new Watched(client, http1.connection(client), open);
    }

    /** An HTTP/1.1 connection whose socket is read by a thread of its own. */
    private record Watched(ClientConnection client, ServerConnection http1, OpenConnections open)
            implements ServerConnection, InterruptableTask<Void> {

        @Override
        public void handle(Limit limit) throws InterruptedException {
            Thread reader =
                    Thread.ofVirtual().name("dormouse-client-reader").start(client::readSocket);
            boolean cutShort = false;
            open.add(client);
            try {
                ScopedValue.where(ClientConnection.CURRENT, client)
                        .<Void, InterruptedException>call(
                                () -> {
                                    http1.handle(limit);
                                    return null;
                                });
                // Returns only after it refused a request by itself; otherwise it throws.
                cutShort = true;
            } finally {
                if (cutShort || client.requestCutShort()) {
                    client.linger(LINGER);
                }
                reader.interrupt();
                open.remove(client);
            }
        }

        @Override
        @SuppressWarnings({"removal", "deprecation"}) // the interface still demands it
        public void handle(Semaphore requestSemaphore) throws InterruptedException {
            handle(FixedLimit.create(requestSemaphore));
        }

        @Override
        public boolean canInterrupt() {
            return http1 instanceof InterruptableTask<?> task && task.canInterrupt();
        }

        @Override
        public Duration idleTime() {
            return http1.idleTime();
        }

        @Override
        public void close(boolean interrupt) {
            http1.close(interrupt);
        }
    }
}
