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
 * own connection, and one limit for all its questions. Connects only to what the policy allows, and
 * to the very address that was checked.
 */
final class SideChannelClient implements SideChannel.Dialer, AutoCloseable {
    private final PeerPolicy policy;
    private final NameResolver resolver;

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
    }

    @Override
    public SideChannel.Conversation dial(SideChannelAddress address, Duration limit)
            throws IOException {
        long deadlineNanos = System.nanoTime() + limit.toNanos();
        ZmtpConnection connection =
                new ZmtpConnection(connect(address, deadlineNanos), HandshakePayload.MAX_BYTES);
        try {
            connection.setDeadline(deadlineNanos);
            connection.open("REQ");
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
