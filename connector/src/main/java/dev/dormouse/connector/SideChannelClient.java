package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The asking end of the side channel, which a ZeroMQ REQ is to its peers. Each conversation has its
 * own connection, which it may leave to a later one, and one limit for all its questions. Connects
 * only to what the policy allows, and to the very address that was checked. Thread-safe.
 */
final class SideChannelClient implements SideChannel.Dialer, AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final PeerPolicy policy;
    private final NameResolver resolver;
    private final KeptConnections kept = new KeptConnections(System::nanoTime);

    SideChannelClient(PeerPolicy policy) {
        this(policy, new NameResolver());
    }

    /** A client that owns {@code resolver}. */
    SideChannelClient(PeerPolicy policy, NameResolver resolver) {
        this.policy = policy;
        this.resolver = resolver;
    }

    @Override
    public void close() {
        resolver.close();
        kept.close();
    }

    @Override
    public SideChannel.Conversation dial(SideChannelAddress address, Duration limit)
            throws IOException {
        ZmtpConnection connection = open(address, System.nanoTime() + limit.toNanos());
        return new SideChannel.Conversation() {
            @Override
            public SideChannel.Answer ask(byte[] question) throws IOException {
                return exchange(connection, question);
            }

            @Override
            public void close() throws IOException {
                connection.close();
            }
        };
    }

    @Override
    public SideChannel.Conversation resume(SideChannelAddress address, Duration limit) {
        return new Resumed(address, System.nanoTime() + limit.toNanos());
    }

    /** Goes on over a connection that was left, if there is one that is in step. */
    private final class Resumed implements SideChannel.Conversation {
        private final SideChannelAddress address;
        private final long deadlineNanos;
        private KeptConnections.@Nullable Opened connection;

        private Resumed(SideChannelAddress address, long deadlineNanos) {
            this.address = address;
            this.deadlineNanos = deadlineNanos;
        }

        @Override
        public SideChannel.Answer ask(byte[] question) throws IOException {
            KeptConnections.Opened own = connection;
            if (own != null) {
                return ask(own, question);
            }
            KeptConnections.Opened left = kept.take(address);
            if (left != null) {
                try {
                    // Half of the time: a peer that has gone without a word may be there again.
                    left.connection()
                            .setDeadline(deadlineNanos - (deadlineNanos - System.nanoTime()) / 2);
                    SideChannel.Answer answer = ask(left, question);
                    left.connection().setDeadline(deadlineNanos);
                    return answer;
                } catch (IOException | WireException e) { // the peer has closed it, most likely
                    LOG.log(
                            System.Logger.Level.DEBUG,
                            "side channel: connects anew to {0}: {1}",
                            address,
                            e.getMessage());
                }
            }
            long nowNanos = System.nanoTime(); // before the name is resolved
            return ask(
                    new KeptConnections.Opened(open(address, deadlineNanos), nowNanos), question);
        }

        private SideChannel.Answer ask(KeptConnections.Opened asked, byte[] question)
                throws IOException {
            connection = null;
            try {
                if (asked.connection().hasUnread()) { // it would be taken for this answer
                    throw new WireException("side channel: an answer to no question");
                }
                SideChannel.Answer answer = exchange(asked.connection(), question);
                connection = asked;
                return answer;
            } finally {
                if (connection == null) {
                    asked.connection().close();
                }
            }
        }

        @Override
        public void leave() {
            if (connection != null) {
                kept.keep(address, connection);
                connection = null;
            }
        }

        @Override
        public void close() throws IOException {
            if (connection != null) {
                connection.connection().close();
                connection = null;
            }
        }
    }

    private ZmtpConnection open(SideChannelAddress address, long deadlineNanos) throws IOException {
        ZmtpConnection connection =
                new ZmtpConnection(connect(address, deadlineNanos), HandshakePayload.MAX_BYTES);
        try {
            connection.setDeadline(deadlineNanos);
            connection.open("REQ");
            return connection;
        } catch (IOException | RuntimeException e) {
            connection.close();
            throw e;
        }
    }

    private static SideChannel.Answer exchange(ZmtpConnection connection, byte[] question)
            throws IOException {
        connection.send(List.of(new byte[0], question));
        @Nullable List<byte[]> reply = connection.receive();
        if (reply == null || reply.size() != 3 || reply.getFirst().length != 0) {
            throw new WireException(
                    "handshake reply: "
                            + (reply == null ? "end of stream" : reply.size() - 1 + " frames")
                            + ", not payload and timestamp");
        }
        return new SideChannel.Answer(reply.get(1), reply.get(2));
    }

    /** Tries all addresses of the host in turn. */
    private Socket connect(SideChannelAddress address, long deadlineNanos) throws IOException {
        List<InetAddress> candidates =
                resolver.resolve(
                        address.host(), Duration.ofNanos(deadlineNanos - System.nanoTime()));
        IOException failure = new IOException("the host has no address");
        for (InetAddress candidate : candidates) {
            String refusal = policy.refusal(address, candidate);
            if (refusal != null) {
                failure = new IOException("peer " + candidate + " is refused: " + refusal);
                continue;
            }
            long leftMillis = (deadlineNanos - System.nanoTime()) / 1_000_000;
            if (leftMillis < 1) {
                throw new SocketTimeoutException("no time left to connect");
            }
            Socket socket = new Socket();
            try {
                socket.connect(new InetSocketAddress(candidate, address.port()), (int) leftMillis);
                return socket;
            } catch (IOException e) {
                socket.close();
                failure = e;
            }
        }
        throw failure;
    }
}
