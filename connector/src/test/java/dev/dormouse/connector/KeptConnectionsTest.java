package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What becomes of connections that nobody uses. */
final class KeptConnectionsTest {
    private long nowNanos;
    private final KeptConnections kept = new KeptConnections(() -> nowNanos);
    private final ServerSocket server = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new ArrayList<>();

    KeptConnectionsTest() throws IOException {}

    @AfterEach
    void close() throws IOException {
        kept.close();
        server.close();
    }

    @Test
    void aConnectionIsGivenToOneTakerOfItsAddress() throws IOException {
        KeptConnections.Opened connection = connect();
        kept.keep(address(1), connection);
        assertThat(kept.take(address(2))).isNull();
        assertThat(kept.take(address(1))).isSameAs(connection);
        assertThat(kept.take(address(1))).isNull();
    }

    @Test
    void anOldConnectionIsClosedWhenAnotherOneIsAskedFor() throws IOException {
        kept.keep(address(1), connect());
        nowNanos += Duration.ofSeconds(30).toNanos();
        assertThat(kept.take(address(1))).isNull();
        assertThat(open()).isZero();
    }

    @Test
    void aBusyConnectionIsReplacedWhenItIsOld() throws IOException {
        kept.keep(address(1), connect());
        for (int i = 0; i < 2; i++) {
            nowNanos += Duration.ofSeconds(10).toNanos();
            KeptConnections.Opened busy = Objects.requireNonNull(kept.take(address(1)));
            kept.keep(address(1), busy);
        }
        KeptConnections.Opened old = Objects.requireNonNull(kept.take(address(1)));
        kept.keep(address(2), connect());
        nowNanos += Duration.ofSeconds(10).toNanos();
        kept.keep(address(1), old);
        assertThat(kept.take(address(1))).isNull();
        assertThat(sockets.getFirst().isClosed()).isTrue();
        assertThat(kept.take(address(2))).isNotNull();
    }

    @Test
    void ofTooManyTheOldestIsClosed() throws IOException {
        for (int port = 1; port <= 65; port++) {
            kept.keep(address(port), connect());
        }
        assertThat(open()).isEqualTo(64);
        assertThat(sockets.getFirst().isClosed()).isTrue();
    }

    @Test
    void anAddressHasOneConnection() throws IOException {
        kept.keep(address(1), connect());
        KeptConnections.Opened newer = connect();
        kept.keep(address(1), newer);
        assertThat(open()).isOne();
        assertThat(kept.take(address(1))).isSameAs(newer);
    }

    @Test
    void onceClosedItKeepsNothing() throws IOException {
        kept.keep(address(1), connect());
        kept.close();
        kept.keep(address(2), connect());
        assertThat(open()).isZero();
    }

    private static SideChannelAddress address(int port) {
        return new SideChannelAddress("127.0.0.1", port);
    }

    private KeptConnections.Opened connect() throws IOException {
        Socket socket = new Socket(server.getInetAddress(), server.getLocalPort());
        sockets.add(socket);
        return new KeptConnections.Opened(new ZmtpConnection(socket, 1_000), nowNanos);
    }

    private long open() {
        return sockets.stream().filter(socket -> !socket.isClosed()).count();
    }
}
