package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
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
    public List<byte[]> fetch(SideChannelAddress address, List<RankId> ranks) {
        long deadlineNanos = System.nanoTime() + timeout.toNanos();
        try (ZmtpConnection connection =
                new ZmtpConnection(connect(address, deadlineNanos), HandshakePayload.MAX_BYTES)) {
            connection.setDeadline(deadlineNanos);
            connection.open("REQ");
            List<byte[]> payloads = new ArrayList<>();
            for (RankId rank : ranks) {
                connection.send(List.of(new byte[0], HandshakeRequest.encode(rank)));
                payloads.add(payload(connection.receive()));
            }
            return payloads;
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

    private static byte[] payload(@Nullable List<byte[]> reply) {
        if (reply == null || reply.size() != 3 || reply.getFirst().length != 0) {
            throw new WireException(
                    "handshake reply: "
                            + (reply == null ? "end of stream" : reply.size() - 1 + " frames")
                            + ", not payload and timestamp");
        }
        return reply.get(1);
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
