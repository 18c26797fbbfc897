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
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The asking end, and peers that do not answer as they should. */
final class SideChannelClientTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    /** It does not say which request it is about. */
    private static final byte[] HOLD_OF_OLDER_PEER =
            new WireWriter()
                    .map(2)
                    .string("held_seconds")
                    .float64(3)
                    .string("instance_id")
                    .string("pi")
                    .bytes();

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
                                ZmtpConnection connection = greet(socket);
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

    @Test
    void aMalformedAnswersConnectionIsNotLeftToTheNextClaim() throws IOException {
        assertIsClosedAfter(
                new WireWriter().string("held").bytes(),
                claim ->
                        assertThatExceptionOfType(WireException.class)
                                .isThrownBy(claim::run)
                                .withMessageContaining("hold answer"));
    }

    @Test
    void anAnswerAboutAnotherRequestIsRefusedAndItsConnectionNotLeft() throws IOException {
        assertIsClosedAfter(
                HoldAnswer.encode("other", 3, false, 4, "pi"),
                claim ->
                        assertThatExceptionOfType(WireException.class)
                                .isThrownBy(claim::run)
                                .withMessageContaining("another request"));
    }

    @Test
    void theConnectionToWhoDoesNotHoldTheRequestIsNotLeft() throws IOException {
        assertIsClosedAfter(HoldAnswer.encode("r", -1, false, 4, "pi"), Runnable::run);
    }

    private interface Claim {
        void make(Runnable claim);
    }

    /** The client is open still when the peer sees the end of its connection. */
    private static void assertIsClosedAfter(byte[] body, Claim claim) throws IOException {
        try (SideChannelClient client = new SideChannelClient(PeerPolicy.ANY)) {
            CompletableFuture<Void> ended =
                    withPeer(
                            socket -> {
                                ZmtpConnection connection = greet(socket);
                                assertThat(connection.receive()).hasSize(2);
                                connection.send(reply(body));
                                assertThat(connection.receive()).isNull();
                            },
                            address -> claim.make(() -> isHeld(client, address, "r")));
            assertThat(ended).succeedsWithin(LIMIT);
        }
    }

    @Test
    void aSecondAnswerIsNotTakenForThatToTheNextClaim() throws IOException {
        CompletableFuture<Void> sent = new CompletableFuture<>();
        try (SideChannelClient client = new SideChannelClient(PeerPolicy.ANY)) {
            CompletableFuture<Void> ended =
                    withPeers(
                            List.of(
                                    socket -> {
                                        ZmtpConnection connection = greet(socket);
                                        assertThat(connection.receive()).hasSize(2);
                                        connection.send(reply(HOLD_OF_OLDER_PEER));
                                        connection.send(reply(HOLD_OF_OLDER_PEER));
                                        sent.complete(null);
                                        assertThat(connection.receive()).isNull();
                                    },
                                    socket ->
                                            answer(
                                                    socket,
                                                    reply(
                                                            HoldAnswer.encode(
                                                                    "s", -1, false, 4, "pi")))),
                            address -> {
                                assertThat(isHeld(client, address, "r")).isTrue();
                                assertThat(sent).succeedsWithin(LIMIT);
                                assertThat(isHeld(client, address, "s")).isFalse();
                            });
            assertThat(ended).succeedsWithin(LIMIT);
        }
    }

    @Test
    void aSecondAnswerEndsTheConversation() throws IOException {
        CompletableFuture<Void> sent = new CompletableFuture<>();
        try (SideChannelClient client = new SideChannelClient(PeerPolicy.ANY)) {
            CompletableFuture<Void> ended =
                    withPeer(
                            socket -> {
                                ZmtpConnection connection = greet(socket);
                                assertThat(connection.receive()).hasSize(2);
                                connection.send(reply(HOLD_OF_OLDER_PEER));
                                connection.send(reply(HOLD_OF_OLDER_PEER));
                                sent.complete(null);
                                assertThat(connection.receive()).isNull();
                            },
                            address -> {
                                try (SideChannel.Conversation conversation =
                                        client.resume(address, LIMIT)) {
                                    byte[] claim = new HoldQuestion("r", "di").encode();
                                    SideChannel.Answer _ = conversation.ask(claim);
                                    assertThat(sent).succeedsWithin(LIMIT);
                                    assertThatExceptionOfType(WireException.class)
                                            .isThrownBy(() -> conversation.ask(claim))
                                            .withMessageContaining("no question");
                                }
                            });
            assertThat(ended).succeedsWithin(LIMIT);
        }
    }

    private static boolean isHeld(
            SideChannelClient client, SideChannelAddress address, String requestId) {
        HoldQuestion claim = new HoldQuestion(requestId, "di");
        HandshakeClient asking = new HandshakeClient(client, System::nanoTime);
        HoldAnswer answer = asking.claim(address, new OpenClaims(List.of(claim)), LIMIT).get(claim);
        return Objects.requireNonNull(answer).held();
    }

    private static List<byte[]> reply(byte[] body) {
        return List.of(new byte[0], body, new WireWriter().float64(1).bytes());
    }

    private static ZmtpConnection greet(Socket socket) throws IOException {
        ZmtpConnection connection = new ZmtpConnection(socket, 1_000);
        connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
        connection.open("ROUTER");
        return connection;
    }

    private static void resume(SideChannelClient client, SideChannelAddress address)
            throws IOException {
        try (SideChannel.Conversation conversation = client.resume(address, LIMIT)) {
            SideChannel.Answer _ = conversation.ask(new HoldQuestion("r", "di").encode());
            conversation.leave();
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
        try (ZmtpConnection connection = greet(socket)) {
            assertThat(connection.receive()).hasSize(2);
            connection.send(frames);
        }
    }

    private interface Check {
        void run(SideChannelAddress address) throws IOException;
    }

    private static CompletableFuture<Void> withPeer(Peer peer, Check check) throws IOException {
        return withPeers(List.of(peer), check);
    }

    /** What the ends of the peers came to, one connection each. */
    private static CompletableFuture<Void> withPeers(List<Peer> peers, Check check)
            throws IOException {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        try (ServerSocket server = new ServerSocket(0, 2, InetAddress.getLoopbackAddress())) {
            Thread _ =
                    Thread.ofPlatform()
                            .daemon()
                            .start(
                                    () -> {
                                        try {
                                            for (Peer peer : peers) {
                                                try (Socket socket = server.accept()) {
                                                    peer.run(socket);
                                                }
                                            }
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
