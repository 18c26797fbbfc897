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
 * The asking end of the side channel, which a ZeroMQ REQ is to its peers. Each handshake has its
 * own connection, and one limit for all its ranks. Connects only to what the policy allows, and to
 * the very address that was checked.
 */
final class SideChannelClient implements HandshakeClient, AutoCloseable {
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
    public HandshakeAnswers ask(
            SideChannelAddress address,
            List<RankId> ranks,
            List<String> requestIds,
            Duration limit) {
        long deadlineNanos = System.nanoTime() + limit.toNanos();
        try (ZmtpConnection connection =
                new ZmtpConnection(connect(address, deadlineNanos), HandshakePayload.MAX_BYTES)) {
            connection.setDeadline(deadlineNanos);
            connection.open("REQ");
            HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
            for (RankId rank : ranks) {
                long sentNanos = System.nanoTime();
                List<byte[]> reply = exchange(connection, HandshakeRequest.encode(rank));
                answers.addPayload(reply.get(1), reply.get(2), sentNanos, System.nanoTime());
            }
            if (answers.takesHoldQuestions()) {
                for (String id : requestIds) {
                    long sentNanos = System.nanoTime();
                    List<byte[]> reply = exchange(connection, HoldQuestion.encode(id));
                    answers.addHold(id, reply.get(1), sentNanos);
                }
            }
            return answers.answers();
        } catch (SocketTimeoutException e) {
            throw new ConnectorException(
                    "handshake with "
                            + address
                            + ": no answer within "
                            + limit
                            + "; is the engine up, and is this its side channel?",
                    e);
        } catch (IOException e) {
            throw new ConnectorException("handshake with " + address + ": " + e.getMessage(), e);
        }
    }

    /** Asks, and returns empty delimiter, answer and timestamp. */
    private static List<byte[]> exchange(ZmtpConnection connection, byte[] question)
            throws IOException {
        connection.send(List.of(new byte[0], question));
        @Nullable List<byte[]> reply = connection.receive();
        if (reply == null || reply.size() != 3 || reply.getFirst().length != 0) {
            throw new WireException(
                    "handshake reply: "
                            + (reply == null ? "end of stream" : reply.size() - 1 + " frames")
                            + ", not payload and timestamp");
        }
        return reply;
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
