package dev.dormouse.http;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.buffers.DataReader;
import io.helidon.common.buffers.DataWriter;
import io.helidon.common.socket.HelidonSocket;
import io.helidon.common.socket.PeerInfo;
import io.helidon.http.HeaderValues;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.ListenerContext;
import io.helidon.webserver.ProxyProtocolData;
import io.helidon.webserver.Router;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection that notices at any moment when the client leaves.
 *
 * <p>Helidon reads from the socket only when it wants data, so a client that goes away while its
 * request is computed would be noticed by nobody. Here one virtual thread always reads, at most one
 * piece ahead, and the end of the stream is an event. A client that closes only its sending side
 * counts as gone too, as with most HTTP servers. While a client has sent more than its current
 * request, the end shows only when the server writes.
 *
 * <p>Also bounds each wait for the client: for its bytes, and for room to write.
 */
public final class ClientConnection implements ConnectionContext {
    /** The connection whose request the current thread serves. */
    public static final ScopedValue<ClientConnection> CURRENT = ScopedValue.newInstance();

    /** What the reading thread passes on. */
    private sealed interface Arrival {
        /** Some bytes, never empty; the buffer is the receiver's. */
        record Piece(BufferData data) implements Arrival {}

        /** Nothing more comes, by an error unless {@code cause} is null. */
        record End(@Nullable RuntimeException cause) implements Arrival {}
    }

    private final ConnectionContext socket;
    private final TimeLimits limits;
    private final Duration timeout;
    private final LongSupplier nanoClock;
    private final BlockingQueue<Arrival> arrivals = new ArrayBlockingQueue<>(1);
    private final DataReader reader = DataReader.create(this::take);
    private final DataWriter writer = new BoundedWriter();
    private final AtomicReference<@Nullable Runnable> onGone = new AtomicReference<>();
    private volatile boolean gone;
    private volatile boolean serving;
    private volatile long idleSinceNanos;
    // Only touched by the thread that serves the connection.
    private Arrival.@Nullable End end;
    private boolean lastRequestServed;
    private boolean requestCutShort;

    ClientConnection(
            ConnectionContext socket, TimeLimits limits, Duration timeout, LongSupplier nanoClock) {
        this.socket = socket;
        this.limits = limits;
        this.timeout = timeout;
        this.nanoClock = nanoClock;
        this.idleSinceNanos = nanoClock.getAsLong();
    }

    /** True once the client has left. */
    public boolean gone() {
        return gone;
    }

    /**
     * Calls {@code action} once when the client leaves, at once if it has left; from any thread. A
     * later call replaces the action.
     */
    public void whenGone(Runnable action) {
        onGone.set(action);
        if (gone) {
            runOnGone();
        }
    }

    /** Forgets the action of {@link #whenGone}. */
    public void forgetWhenGone() {
        onGone.set(null);
    }

    /**
     * To be called at the beginning of each request, by the thread that serves the connection. Lets
     * the connection end where its next request would begin if this one or its answer says {@code
     * Connection: close}, which Helidon 4.5.0 does not do by itself.
     */
    public void requestBegins(ServerRequest request, ServerResponse response) {
        serving = true;
        response.whenSent(
                () -> {
                    idleSinceNanos = nanoClock.getAsLong();
                    serving = false;
                    boolean byClient =
                            request.headers().containsToken(HeaderValues.CONNECTION_CLOSE);
                    boolean byServer =
                            response.headers().containsToken(HeaderValues.CONNECTION_CLOSE);
                    if (byClient || byServer) {
                        takeNoMore();
                    }
                    // The client may still be sending.
                    requestCutShort |= byServer && !byClient;
                });
    }

    /**
     * Lets the connection end after the current request, whose end cannot be told. To be called by
     * the thread that serves the connection.
     */
    void endAfterBrokenRequest() {
        takeNoMore();
        requestCutShort = true;
    }

    /** What came with the last request is dropped: it must not be taken for another one. */
    private void takeNoMore() {
        lastRequestServed = true;
        reader.skip(reader.available());
    }

    /** True if the answer went out before the request had come in. */
    boolean requestCutShort() {
        return requestCutShort;
    }

    /** True while it waits for a request, or for the rest of a request's head. */
    boolean isIdle() {
        return !serving;
    }

    /** For how long it has been so. */
    long idleNanos() {
        return nanoClock.getAsLong() - idleSinceNanos;
    }

    /** Closes the socket under whoever reads or writes it. */
    public void kill() {
        socket.serverSocket().close();
    }

    /** The body of the reading thread; ends with the socket or by interrupt. */
    void readSocket() {
        DataReader source = socket.dataReader();
        try {
            Arrival.End last;
            try {
                while (true) {
                    source.ensureAvailable();
                    arrivals.put(new Arrival.Piece(source.readBuffer(source.available())));
                }
            } catch (DataReader.InsufficientDataAvailableException e) {
                last = new Arrival.End(null);
            } catch (RuntimeException e) {
                last = new Arrival.End(e);
            }
            gone = true;
            runOnGone();
            arrivals.put(last);
        } catch (InterruptedException e) {
            // The connection is over: nobody waits for what would still come.
        }
    }

    /**
     * Reads and drops what the client still sends, until it closes or {@code limit} passes. A
     * socket closed over unread bytes resets the connection, and the client may lose the answer to,
     * say, a body that was too large to read.
     */
    void linger(Duration limit) {
        long deadlineNanos = System.nanoTime() + limit.toNanos();
        try {
            Arrival arrival;
            do {
                arrival = arrivals.poll(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
            } while (arrival instanceof Arrival.Piece);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void runOnGone() {
        Runnable action = onGone.getAndSet(null);
        if (action != null) {
            action.run();
        }
    }

    private byte[] take() {
        if (lastRequestServed) {
            throw new CloseConnectionException("the last request is served");
        }
        if (end == null) {
            try {
                switch (arrivals.poll(timeout.toNanos(), TimeUnit.NANOSECONDS)) {
                    case null -> throw new CloseConnectionException("client silent for " + timeout);
                    case Arrival.Piece piece -> {
                        return piece.data().readBytes();
                    }
                    case Arrival.End last -> end = last;
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new CloseConnectionException("interrupted while reading", e);
            }
        }
        if (end.cause() != null) {
            throw end.cause();
        }
        // Not Helidon's own sign of the end: in the middle of a request it takes that for a failure
        // of the server, and logs a stack trace for each client that leaves.
        throw new CloseConnectionException("client left");
    }

    @Override
    public DataReader dataReader() {
        return reader;
    }

    @Override
    public DataWriter dataWriter() {
        return writer;
    }

    @Override
    public ListenerContext listenerContext() {
        return socket.listenerContext();
    }

    @Override
    public ExecutorService executor() {
        return socket.executor();
    }

    @Override
    public Router router() {
        return socket.router();
    }

    @Override
    public Optional<ProxyProtocolData> proxyProtocolData() {
        return socket.proxyProtocolData();
    }

    @Override
    public HelidonSocket serverSocket() {
        return socket.serverSocket();
    }

    @Override
    public PeerInfo remotePeer() {
        return socket.remotePeer();
    }

    @Override
    public PeerInfo localPeer() {
        return socket.localPeer();
    }

    @Override
    public boolean isSecure() {
        return socket.isSecure();
    }

    @Override
    public String socketId() {
        return socket.socketId();
    }

    @Override
    public String childSocketId() {
        return socket.childSocketId();
    }

    /** Kills the connection when a write makes no headway. */
    private final class BoundedWriter implements DataWriter {
        @Override
        public void write(BufferData... buffers) {
            bounded(() -> socket.dataWriter().write(buffers));
        }

        @Override
        public void write(BufferData buffer) {
            bounded(() -> socket.dataWriter().write(buffer));
        }

        @Override
        public void writeNow(BufferData... buffers) {
            bounded(() -> socket.dataWriter().writeNow(buffers));
        }

        @Override
        public void writeNow(BufferData buffer) {
            bounded(() -> socket.dataWriter().writeNow(buffer));
        }

        @Override
        public void flush() {
            bounded(() -> socket.dataWriter().flush());
        }

        private void bounded(Runnable write) {
            try (var _ = limits.start(timeout, ClientConnection.this::kill)) {
                write.run();
            }
        }
    }
}
