package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The answering end of the side channel, which a ZeroMQ ROUTER is to its peers. It serves what was
 * last given to {@link #serve}.
 *
 * <p>Any host can reach it. A connection that breaks ZeroMQ's protocol is closed, a message that is
 * not exactly a request is dropped without an answer, and when there are too many connections the
 * oldest goes. A request for a rank that has no payload is answered with a {@linkplain
 * HandshakePayload#refusal refusal}: vLLM's readers fail on it at once, where silence would stall
 * their only handshake thread for five seconds.
 */
final class SideChannelListener implements SideChannel {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final int MAX_CONNECTIONS = 256;
    private static final int MAX_MESSAGE_BYTES = 1_024;
    private static final long GREETING_NANOS = TimeUnit.SECONDS.toNanos(5);
    private static final long ACCEPT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final LongSupplier nanoClock;
    private final ServerSocket server;
    private final Thread acceptor;
    private final Set<Socket> connections = new LinkedHashSet<>();
    private volatile Map<RankId, byte[]> payloads = Map.of();
    private volatile @Nullable HoldBook holds;

    /**
     * Binds and starts to answer.
     *
     * @param nanoClock stamps answers; the clock that also stamps leases
     * @throws SideChannelException if the address cannot be bound
     */
    SideChannelListener(SideChannelAddress address, LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
        this.server = bind(address);
        this.acceptor =
                Thread.ofPlatform().name("dormouse-side-channel").daemon().unstarted(this::accept);
        acceptor.start();
    }

    @Override
    public int port() {
        return server.getLocalPort();
    }

    @Override
    public void serve(Map<RankId, byte[]> newPayloads) {
        payloads = Map.copyOf(newPayloads);
    }

    @Override
    public void answerHolds(HoldBook book) {
        holds = book;
    }

    @Override
    public void close() {
        closeQuietly(server);
        synchronized (connections) {
            connections.forEach(SideChannelListener::closeQuietly);
        }
        try { // the port is free only when nobody waits in accept
            boolean _ = acceptor.join(CLOSE_LIMIT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static ServerSocket bind(SideChannelAddress address) {
        try {
            ServerSocket server = new ServerSocket();
            try {
                server.bind(new InetSocketAddress(address.resolve().getFirst(), address.port()));
                return server;
            } catch (IOException e) {
                closeQuietly(server);
                throw e;
            }
        } catch (IOException e) {
            throw new SideChannelException(
                    "side channel: cannot listen on "
                            + address
                            + " ("
                            + e.getMessage()
                            + "); choose another with --side-channel-host and --side-channel-port,"
                            + " port 0 takes any free one",
                    e);
        }
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket socket = server.accept();
                remember(socket);
                Thread.ofVirtual().name("dormouse-side-channel-peer").start(() -> converse(socket));
            } catch (IOException e) {
                if (!server.isClosed()) {
                    LOG.log(System.Logger.Level.WARNING, "side channel: could not accept", e);
                    LockSupport.parkNanos(ACCEPT_PAUSE_NANOS); // such as too many open files
                }
            }
        }
    }

    private void remember(Socket socket) {
        synchronized (connections) {
            if (connections.size() >= MAX_CONNECTIONS) {
                Socket oldest = connections.iterator().next();
                connections.remove(oldest);
                closeQuietly(oldest);
            }
            connections.add(socket);
            if (server.isClosed()) {
                closeQuietly(socket);
            }
        }
    }

    private void converse(Socket socket) {
        try (ZmtpConnection connection = new ZmtpConnection(socket, MAX_MESSAGE_BYTES)) {
            connection.setDeadline(System.nanoTime() + GREETING_NANOS);
            connection.open("ROUTER");
            while (true) {
                connection.setDeadline(System.nanoTime() + IDLE_NANOS);
                List<byte[]> message = connection.receive();
                if (message == null) {
                    return;
                }
                answer(connection, message);
            }
        } catch (IOException e) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "side channel: ended a connection from {0}: {1}",
                    socket.getRemoteSocketAddress(),
                    e.getMessage());
        } finally {
            synchronized (connections) {
                connections.remove(socket);
            }
        }
    }

    private void answer(ZmtpConnection connection, List<byte[]> message) throws IOException {
        byte[] answer;
        try {
            if (message.size() != 2 || message.getFirst().length != 0) {
                throw new WireException(message.size() + " frames, or no empty delimiter");
            }
            answer = answer(message.get(1));
        } catch (WireException e) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "side channel: dropped a message: {0}",
                    e.getMessage());
            return;
        }
        byte[] timestamp = new WireWriter().float64(nanoClock.getAsLong() / 1e9).bytes();
        connection.send(List.of(new byte[0], answer, timestamp));
    }

    private byte[] answer(byte[] question) {
        HoldBook book = holds;
        String requestId = book == null ? null : HoldQuestion.decode(question);
        if (book != null && requestId != null) {
            return book.answer(requestId);
        }
        RankId rank = HandshakeRequest.decode(question);
        Map<RankId, byte[]> served = payloads;
        byte[] payload = served.get(rank);
        return payload != null
                ? payload
                : HandshakePayload.refusal(
                        served.isEmpty() ? "its KV cache is asleep" : "it has no " + rank);
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            LOG.log(System.Logger.Level.DEBUG, "side channel: close failed", e);
        }
    }
}
