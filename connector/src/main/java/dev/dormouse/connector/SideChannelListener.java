package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The answering end of the side channel, which a ZeroMQ ROUTER is to its peers. What it answers is
 * its {@link SideChannelDesk}'s business.
 *
 * <p>Any host can reach it. A connection that breaks ZeroMQ's protocol is closed, a message that is
 * not exactly a request is dropped without an answer, every wait has a limit, and when there are
 * too many connections the {@linkplain ConnectionTable greediest address} gives one up.
 */
final class SideChannelListener implements SideChannel {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    static final int MAX_MESSAGE = 4_096;
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

    private final SideChannelDesk desk;
    private final ServerSocket server;
    private final Limits limits;
    private final ConnectionTable connections;
    private final Thread acceptor;

    /**
     * Binds and starts to answer.
     *
     * @param desk decides what is answered
     * @throws SideChannelException if the address cannot be bound
     */
    SideChannelListener(SideChannelAddress address, SideChannelDesk desk) {
        this(bind(address), desk, Limits.DEFAULT);
    }

    /** Answers on {@code server}, which it owns. */
    SideChannelListener(ServerSocket server, SideChannelDesk desk, Limits limits) {
        this.desk = desk;
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
                // Whoever has no connections waits for one without waking up in between.
                server.setSoTimeout(connections.size() == 0 ? 0 : SWEEP_MILLIS);
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
        try (ZmtpConnection connection = new ZmtpConnection(entry.socket(), MAX_MESSAGE)) {
            connection.setDeadline(after(limits.greeting()));
            connection.open("ROUTER");
            entry.greeted();
            SideChannelDesk.Session session = desk.connected();
            while (true) {
                long deadline = after(limits.idle());
                entry.setDeadline(deadline);
                connection.setDeadline(deadline);
                List<byte[]> message = connection.receive();
                if (message == null) {
                    return;
                }
                entry.setDeadline(after(limits.answer()));
                answer(connection, session, message);
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

    private static void answer(
            ZmtpConnection connection, SideChannelDesk.Session session, List<byte[]> message)
            throws IOException {
        if (message.size() != 2 || message.getFirst().length != 0) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "side channel: dropped a message of {0} frames, or without empty delimiter",
                    message.size());
            return;
        }
        SideChannel.Answer answer = session.answer(message.get(1));
        if (answer != null) {
            connection.send(List.of(new byte[0], answer.body(), answer.timestamp()));
        }
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            LOG.log(System.Logger.Level.DEBUG, "side channel: close failed", e);
        }
    }
}
