package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The asking end, and peers that do not answer as they should. */
final class SideChannelClientTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private interface Peer {
        void run(Socket socket) throws IOException;
    }

    @Test
    void anAnswerOfAnotherShapeIsNamedByItsShape() throws IOException {
        List<List<byte[]>> answers =
                List.of(
                        List.of(new byte[0], new byte[1]),
                        List.of(new byte[0], new byte[1], new byte[1], new byte[1]));
        for (List<byte[]> answer : answers) {
            CompletableFuture<Void> _ =
                    withPeer(
                            socket -> answer(socket, answer),
                            address ->
                                    assertThatExceptionOfType(WireException.class)
                                            .isThrownBy(() -> ask(address))
                                            .withMessageContaining(
                                                    (answer.size() - 1) + " frames"));
        }
    }

    @Test
    void anEndInsteadOfAnAnswerIsNamed() throws IOException {
        CompletableFuture<Void> _ =
                withPeer(
                        socket -> answer(socket, List.of()),
                        address ->
                                assertThatExceptionOfType(WireException.class)
                                        .isThrownBy(() -> ask(address))
                                        .withMessageContaining("end of stream"));
    }

    @Test
    void aConnectionToWhatIsNoPeerIsClosed() throws IOException {
        CompletableFuture<Void> ended =
                withPeer(
                        socket -> {
                            socket.setSoTimeout((int) LIMIT.toMillis());
                            socket.getOutputStream().write(new byte[64]);
                            assertThat(socket.getInputStream().readAllBytes()).hasSize(64);
                        },
                        address ->
                                assertThatThrownBy(() -> ask(address))
                                        .isInstanceOf(IOException.class)
                                        .hasMessageContaining("signature"));
        assertThat(ended).succeedsWithin(LIMIT);
    }

    @Test
    void aConnectionWithAWrongAnswerIsNotLeftToTheNextConversation() throws IOException {
        try (SideChannelClient client = new SideChannelClient(PeerPolicy.ANY)) {
            CompletableFuture<Void> ended =
                    withPeer(
                            socket -> {
                                ZmtpConnection connection = new ZmtpConnection(socket, 1_000);
                                connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
                                connection.open("ROUTER");
                                assertThat(connection.receive()).hasSize(2);
                                connection.send(List.of(new byte[0], new byte[1]));
                                assertThat(connection.receive()).isNull();
                            },
                            address ->
                                    assertThatExceptionOfType(WireException.class)
                                            .isThrownBy(() -> resume(client, address)));
            assertThat(ended).succeedsWithin(LIMIT);
        }
    }

    private static void resume(SideChannelClient client, SideChannelAddress address)
            throws IOException {
        try (SideChannel.Conversation conversation = client.resume(address, LIMIT)) {
            SideChannel.Answer _ = conversation.ask(new HoldQuestion("r", "di").encode());
        }
    }

    private static void ask(SideChannelAddress address) throws IOException {
        try (SideChannelClient client = new SideChannelClient(PeerPolicy.ANY);
                SideChannel.Conversation conversation = client.dial(address, LIMIT)) {
            SideChannel.Answer _ = conversation.ask(HandshakeRequest.encode(new RankId(0, 0)));
        }
    }

    /** Answers one question with these frames, or by hanging up. */
    private static void answer(Socket socket, List<byte[]> frames) throws IOException {
        try (ZmtpConnection connection = new ZmtpConnection(socket, 1_000)) {
            connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
            connection.open("ROUTER");
            assertThat(connection.receive()).hasSize(2);
            connection.send(frames);
        }
    }

    private interface Check {
        void run(SideChannelAddress address);
    }

    /** What the peer's end came to. */
    private static CompletableFuture<Void> withPeer(Peer peer, Check check) throws IOException {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread _ =
                    Thread.ofPlatform()
                            .daemon()
                            .start(
                                    () -> {
                                        try (Socket socket = server.accept()) {
                                            peer.run(socket);
                                            ended.complete(null);
                                        } catch (IOException | AssertionError e) {
                                            ended.completeExceptionally(e);
                                        }
                                    });
            check.run(new SideChannelAddress("127.0.0.1", server.getLocalPort()));
        }
        return ended;
    }
}
