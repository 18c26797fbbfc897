package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The answering end of the side channel, which a ZeroMQ ROUTER is to its peers. It serves what was
 * last given to {@link #serve}.
 *
 * <p>Any host can reach it. A connection that breaks ZeroMQ's protocol is closed, a message that is
 * not exactly a request is dropped without an answer, every wait has a limit, and when there are
 * too many connections the {@linkplain ConnectionTable greediest address} gives one up. A request
 * for a rank that has no payload is answered with a {@linkplain HandshakePayload#refusal refusal}:
 * vLLM's readers fail on it at once, where silence would stall their only handshake thread for five
 * seconds.
 */
final class SideChannelListener implements SideChannel {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final int MAX_MESSAGE_BYTES = 1_024;
    private static final long ACCEPT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int SWEEP_MILLIS = 250;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    /**
     * What peers may take.
     *
     * @param connections at once
     * @param greeting limit of the ZeroMQ greeting
     * @param idle limit of the wait for a whole request
     * @param answer limit of the writing of an answer
     */
    record Limits(int connections, Duration greeting, Duration idle, Duration answer) {
        static final Limits DEFAULT =
                new Limits(
                        256, Duration.ofSeconds(5), Duration.ofMinutes(1), Duration.ofSeconds(5));
    }

    private final LongSupplier nanoClock;
    private final ServerSocket server;
    private final Limits limits;
    private final ConnectionTable connections;
    private final Thread acceptor;
    private volatile Map<RankId, byte[]> payloads = Map.of();
    private volatile @Nullable HoldBook holds;

    /**
     * Binds and starts to answer.
     *
     * @param nanoClock stamps answers; the clock that also stamps leases
     * @throws SideChannelException if the address cannot be bound
     */
    SideChannelListener(SideChannelAddress address, LongSupplier nanoClock) {
        this(bind(address), nanoClock, Limits.DEFAULT);
    }

    /** Answers on {@code server}, which it owns. */
    SideChannelListener(ServerSocket server, LongSupplier nanoClock, Limits limits) {
        this.nanoClock = nanoClock;
        this.server = server;
        this.limits = limits;
        this.connections = new ConnectionTable(limits.connections());
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
        connections.close();
        try { // the port is free only when nobody waits in accept
            boolean _ = acceptor.join(CLOSE_LIMIT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Connections that are open now. */
    int connections() {
        return connections.size();
    }

    static ServerSocket bind(SideChannelAddress address) {
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

    /** Takes connections, and now and then closes those whose time is over. */
    private void accept() {
        while (!server.isClosed()) {
            try {
                server.setSoTimeout(SWEEP_MILLIS);
                Socket socket = server.accept();
                try {
                    start(socket);
                } catch (RuntimeException | Error e) {
                    closeQuietly(socket);
                    throw e;
                }
            } catch (SocketTimeoutException e) {
                LOG.log(System.Logger.Level.TRACE, "side channel: nobody came");
            } catch (IOException | RuntimeException | Error e) {
                if (!server.isClosed()) { // whatever it was, the next peer must find an answer
                    LOG.log(System.Logger.Level.WARNING, "side channel: could not accept", e);
                    LockSupport.parkNanos(ACCEPT_PAUSE_NANOS); // such as too many open files
                }
            }
            connections.closeOverdue(System.nanoTime());
        }
    }

    private void start(Socket socket) {
        ConnectionTable.Entry entry = connections.add(socket, after(limits.greeting()));
        try {
            Thread.ofVirtual().name("dormouse-side-channel-peer").start(() -> converse(entry));
        } catch (RuntimeException | Error e) {
            connections.remove(entry);
            throw e;
        }
    }

    private void converse(ConnectionTable.Entry entry) {
        try (ZmtpConnection connection = new ZmtpConnection(entry.socket(), MAX_MESSAGE_BYTES)) {
            connection.setDeadline(after(limits.greeting()));
            connection.open("ROUTER");
            entry.greeted();
            while (true) {
                long deadline = after(limits.idle());
                entry.setDeadline(deadline);
                connection.setDeadline(deadline);
                List<byte[]> message = connection.receive();
                if (message == null) {
                    return;
                }
                entry.setDeadline(after(limits.answer()));
                answer(connection, message);
            }
        } catch (IOException | RuntimeException e) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "side channel: ended a connection from {0}: {1}",
                    entry.socket().getRemoteSocketAddress(),
                    e.getMessage());
        } finally {
            connections.remove(entry);
        }
    }

    private static long after(Duration limit) {
        return System.nanoTime() + limit.toNanos();
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
