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
 * own connection, and one limit for all its ranks.
 */
final class SideChannelClient implements HandshakeClient {
    private final Duration timeout;

    SideChannelClient(Duration timeout) {
        this.timeout = timeout;
    }

    @Override
    public HandshakeAnswers ask(
            SideChannelAddress address, List<RankId> ranks, List<String> requestIds) {
        long deadlineNanos = System.nanoTime() + timeout.toNanos();
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
                            + timeout
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
    private static Socket connect(SideChannelAddress address, long deadlineNanos)
            throws IOException {
        IOException failure = new IOException("the host has no address");
        for (InetAddress candidate : address.resolve()) {
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
