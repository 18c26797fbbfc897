package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Hostile peers on real sockets: neither end of the side channel dies, hangs or grows. */
final class SideChannelHostileTest {
    private static final RankId RANK = new RankId(0, 0);
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final Duration SHORT = Duration.ofMillis(200);
    private static final byte[] PAYLOAD =
            new HandshakePayload("0".repeat(64), new byte[1000], 3, "i").encode();

    private final List<Socket> sockets = new ArrayList<>();
    private final SideChannelClient client = new SideChannelClient(PeerPolicy.ANY);
    private final AtomicInteger brokenAccepts = new AtomicInteger();
    private static final long EPOCH = 1;

    private final SideChannelDesk desk =
            new SideChannelDesk("P", "i", System::nanoTime, new HoldBook("i", System::nanoTime));
    private SideChannelListener listener = open(256, Duration.ofSeconds(30));

    @AfterEach
    void close() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
        client.close();
        listener.close();
    }

    @Test
    void anAnswerThatNobodyReadsEndsAtItsLimit() throws IOException {
        reopen(256, Duration.ofSeconds(30));
        byte[] large = new byte[HandshakePayload.MAX_BYTES - 100];
        desk.serve(EPOCH, Map.of(RANK, large));
        Socket deaf = new Socket();
        sockets.add(deaf);
        deaf.setReceiveBufferSize(4_096);
        deaf.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), listener.port()));
        ZmtpConnection connection = new ZmtpConnection(deaf, 1_000);
        connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
        connection.open("DEALER");
        connection.send(List.of(new byte[0], HandshakeRequest.encode(RANK)));
        Await.until("the end of the connection", () -> listener.connections() == 0);
        assertThat(ask(address(), List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(large);
    }

    @Test
    void aFloodFromOneAddressEvictsItsOwnConnectionsOnly() throws IOException {
        reopen(32, Duration.ofSeconds(30));
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        try (Socket honest = connect("127.0.0.2")) {
            for (int i = 0; i < 200; i++) {
                connect("127.0.0.1");
            }
            Await.until("the table's limit", () -> listener.connections() == 32);
            ZmtpConnection connection = new ZmtpConnection(honest, 2_000);
            connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
            connection.open("DEALER");
            for (int i = 0; i < 100; i++) {
                connect("127.0.0.1");
            }
            connection.send(List.of(new byte[0], HandshakeRequest.encode(RANK)));
            assertThat(connection.receive()).element(1).isEqualTo(PAYLOAD);
        }
    }

    @Test
    void whoHasGreetedOutlivesWhoHasNot() throws IOException {
        reopen(8, Duration.ofSeconds(30));
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        ZmtpConnection greeted = new ZmtpConnection(connect("127.0.0.1"), 2_000);
        greeted.setDeadline(System.nanoTime() + LIMIT.toNanos());
        greeted.open("DEALER");
        greeted.send(List.of(new byte[0], HandshakeRequest.encode(RANK)));
        assertThat(greeted.receive()).hasSize(3);
        for (int i = 0; i < 50; i++) {
            connect("127.0.0.1");
        }
        greeted.send(List.of(new byte[0], HandshakeRequest.encode(RANK)));
        assertThat(greeted.receive()).element(1).isEqualTo(PAYLOAD);
    }

    @Test
    void theAcceptorSurvivesWhateverGoesWrong() throws IOException {
        ServerSocket failing =
                new ServerSocket() {
                    @Override
                    public Socket accept() throws IOException {
                        return switch (brokenAccepts.incrementAndGet()) {
                            case 1 -> throw new IllegalStateException("injected");
                            case 2 -> throw new OutOfMemoryError("injected");
                            case 3 -> throw new IOException("injected");
                            default -> super.accept();
                        };
                    }
                };
        failing.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        listener.close();
        listener = new SideChannelListener(failing, desk, SideChannelListener.Limits.DEFAULT);
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        assertThat(ask(address(), List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(PAYLOAD);
        assertThat(brokenAccepts).hasValueGreaterThan(3);
    }

    @Test
    void drippingAndManyConnectionsAreBoundedAndEnd() throws IOException {
        reopen(64, SHORT);
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        List<Socket> dripping = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            Socket socket = connect("127.0.0.1");
            assertThat(listener.connections()).isLessThanOrEqualTo(64);
            if (i % 20 == 0) {
                dripping.add(socket);
            }
        }
        byte[] greeting = greeting();
        int[] at = {0};
        Await.until(
                "the end of all that only drip",
                LIMIT,
                () -> {
                    dripping.forEach(socket -> drip(socket, greeting[at[0] % 30]));
                    at[0]++;
                    return listener.connections() == 0;
                },
                listener::connections);
        assertThat(ask(address(), List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(PAYLOAD);
    }

    @Test
    void noRequestEndsTheListener() {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        Seeded.forAll(
                120,
                random -> {
                    try (ZmtpConnection connection =
                            new ZmtpConnection(
                                    new Socket(InetAddress.getLoopbackAddress(), listener.port()),
                                    4_096)) {
                        connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
                        connection.open("DEALER");
                        List<byte[]> frames = new ArrayList<>();
                        for (int i = random.nextInt(1, 12); i > 0; i--) {
                            frames.add(
                                    random.nextInt(3) == 0
                                            ? new byte[0]
                                            : WireFuzz.bytes(
                                                    HandshakeRequest.encode(RANK), random));
                        }
                        connection.send(frames);
                    } catch (IOException closedByTheListener) {
                        assertThat(closedByTheListener).isNotNull();
                    }
                });
        assertThat(ask(address(), List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(PAYLOAD);
    }

    @Test
    void noAnswerHurtsTheClient() {
        Seeded.forAll(
                60,
                random -> {
                    try (ServerSocket server =
                            new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                        Thread hostile =
                                Thread.ofPlatform()
                                        .daemon()
                                        .start(() -> answerBadly(server, random.split()));
                        SideChannelAddress peer =
                                new SideChannelAddress("127.0.0.1", server.getLocalPort());
                        try {
                            for (byte[] answer :
                                    ask(peer, List.of(RANK), List.of(), SHORT).payloads()) {
                                assertThat(answer.length)
                                        .isLessThanOrEqualTo(HandshakePayload.MAX_BYTES);
                            }
                        } catch (ConnectorException expected) {
                            assertThat(expected).hasMessageContaining("handshake");
                        }
                        hostile.interrupt();
                    }
                });
    }

    private static void answerBadly(ServerSocket server, SplittableRandom random) {
        try (Socket socket = server.accept()) {
            OutputStream out = socket.getOutputStream();
            int honest = random.nextInt(4);
            if (honest == 0) {
                out.write(WireFuzz.bytes(greeting(), random));
                return;
            }
            try (ZmtpConnection connection = new ZmtpConnection(socket, 1_000)) {
                connection.setDeadline(System.nanoTime() + LIMIT.toNanos());
                connection.open("ROUTER");
                List<byte[]> _ = connection.receive();
                if (honest == 1) { // a long frame that never ends
                    out.write(new byte[] {3, 0, 0, 0, 0, 0, 0, (byte) 0xff, 0});
                    for (int i = 0; i < 100_000; i++) {
                        out.write(i);
                        out.flush();
                    }
                    return;
                }
                List<byte[]> frames = new ArrayList<>();
                frames.add(new byte[0]);
                for (int i = random.nextInt(4); i > 0; i--) {
                    frames.add(WireFuzz.bytes(PAYLOAD, random));
                }
                connection.send(frames);
            }
        } catch (IOException closedByTheClient) {
            assertThat(closedByTheClient).isNotNull();
        }
    }

    private void reopen(int connections, Duration greeting) {
        listener.close();
        listener = open(connections, greeting);
    }

    private SideChannelListener open(int connections, Duration greeting) {
        return new SideChannelListener(
                SideChannelListener.bind(new SideChannelAddress("127.0.0.1", 0)),
                desk,
                new SideChannelListener.Limits(connections, greeting, greeting, SHORT));
    }

    private HandshakeAnswers ask(
            SideChannelAddress peer,
            List<RankId> ranks,
            List<HoldQuestion> claims,
            Duration limit) {
        return new HandshakeClient(client, System::nanoTime)
                .ask(peer, ranks, new OpenClaims(claims), null, limit);
    }

    private SideChannelAddress address() {
        return new SideChannelAddress("127.0.0.1", listener.port());
    }

    private Socket connect(String from) throws IOException {
        Socket socket = new Socket();
        sockets.add(socket);
        socket.bind(new InetSocketAddress(InetAddress.ofLiteral(from), 0));
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), listener.port()));
        return socket;
    }

    private static void drip(Socket socket, byte value) {
        try {
            socket.getOutputStream().write(value);
        } catch (IOException closedByTheListener) {
            assertThat(closedByTheListener).isNotNull();
        }
    }

    private static byte[] greeting() {
        byte[] greeting = new byte[64];
        greeting[0] = (byte) 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3;
        System.arraycopy("NULL".getBytes(US_ASCII), 0, greeting, 12, 4);
        return greeting;
    }
}
