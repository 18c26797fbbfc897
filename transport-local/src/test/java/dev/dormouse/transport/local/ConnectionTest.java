package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.UnixSocket;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ConnectionTest {
    private final String name = "dormouse-test-" + Token.random();
    private final int listener = UnixSocket.listen(name, 1);
    private final Wire wire = new Wire();
    private final Connection connection =
            new Connection(wire, UnixSocket.connect(name).orElseThrow());
    private final RawPeer peer = new RawPeer(UnixSocket.accept(listener).orElseThrow());

    @AfterEach
    void close() {
        connection.close();
        peer.close();
        wire.close();
        Libc.close(listener);
    }

    private static byte[] frame(int number) {
        byte[] frame = new byte[Frame.MAX_BYTES];
        frame[0] = (byte) number;
        return frame;
    }

    @Test
    void theOthersEndIsSeenAtOnce() {
        assertThat(connection.isHeld()).isTrue();
        peer.close();
        assertThat(connection.isHeld()).isFalse();
        assertThat(connection.send(List.of(frame(1)))).isEqualTo(Connection.Sent.CLOSED);
        assertThat(connection.isClosed()).isTrue();
        assertThat(connection.isHeld()).isFalse();
    }

    @Test
    void whatCannotBeSentAtOnceIsSentInOrderAndTheLastFrameBehindIt() {
        int sent = 0;
        while (connection.send(List.of(frame(sent))) == Connection.Sent.YES) {
            sent++;
        }
        assertThat(connection.isWaiting()).isTrue();
        assertThat(connection.interest()).isEqualTo(PollSet.POLLIN | PollSet.POLLOUT);
        assertThat(connection.sendNow(frame(0), listener)).isFalse();
        connection.sendLast(frame(77));
        assertThat(connection.interest()).isEqualTo(PollSet.POLLOUT);
        assertThat(connection.send(List.of(frame(0)))).isEqualTo(Connection.Sent.CLOSED);

        List<Integer> received = new ArrayList<>();
        for (int i = 0; i < sent; i++) {
            received.add((int) peer.receive().bytes()[0]);
            connection.flush();
        }
        assertThat(peer.receive().bytes()[0]).isEqualTo((byte) 77);
        peer.awaitEnd();

        for (int i = 0; i < sent; i++) {
            assertThat(received.get(i)).isEqualTo(i);
        }
        assertThat(connection.isClosed()).isTrue();
    }
}
