package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Bytes recorded from libzmq 4.3.5, and what no ZeroMQ peer would send. */
final class ZmtpConnectionTest {
    private static final HexFormat HEX = HexFormat.of();
    private static final String SIGNATURE = "ff00000000000000017f";
    private static final String REST_OF_GREETING = "03014e554c4c" + "00".repeat(48);
    private static final String REQ_READY =
            "04260552454144590b536f636b65742d5479706500000003524551084964656e7469747900000000";
    private static final String ROUTER_READY =
            "04290552454144590b536f636b65742d5479706500000006524f55544552084964656e7469747900000000";
    private static final String REQUEST = "0100001193c40c6765745f6d6574615f6d73670003";

    private interface Dialogue {
        void run(Socket socket) throws IOException;
    }

    @Test
    void aRouterUnderstandsLibzmqsRequester() throws IOException {
        withPeer(
                socket -> {
                    send(socket, SIGNATURE);
                    assertThat(receive(socket, 64))
                            .startsWith("ff00000000000000007f0300" + "4e554c4c");
                    send(socket, REST_OF_GREETING + REQ_READY);
                    assertThat(receive(socket, ROUTER_READY.length() / 2)).isEqualTo(ROUTER_READY);
                    send(socket, REQUEST);
                    assertThat(receive(socket, 2 + 9 + 300 + 2 + 9))
                            .isEqualTo(
                                    "0100"
                                            + "03000000000000012c"
                                            + "70".repeat(300)
                                            + "0009"
                                            + "74".repeat(9));
                },
                connection -> {
                    connection.open("ROUTER");
                    List<byte[]> request = connection.receive();
                    assertThat(request)
                            .containsExactly(
                                    new byte[0], HandshakeRequest.encode(new RankId(0, 3)));
                    connection.send(
                            List.of(
                                    new byte[0],
                                    HEX.parseHex("70".repeat(300)),
                                    HEX.parseHex("74".repeat(9))));
                });
    }

    @Test
    void aRequesterUnderstandsLibzmqsRouter() throws IOException {
        withPeer(
                socket -> {
                    send(socket, SIGNATURE);
                    receive(socket, 64);
                    send(socket, REST_OF_GREETING + ROUTER_READY);
                    assertThat(receive(socket, REQ_READY.length() / 2)).isEqualTo(REQ_READY);
                    assertThat(receive(socket, REQUEST.length() / 2)).isEqualTo(REQUEST);
                    send(
                            socket,
                            "0100"
                                    + "03000000000000012c"
                                    + "70".repeat(300)
                                    + "0009"
                                    + "74".repeat(9));
                },
                connection -> {
                    connection.open("REQ");
                    connection.send(
                            List.of(new byte[0], HandshakeRequest.encode(new RankId(0, 3))));
                    assertThat(connection.receive())
                            .containsExactly(
                                    new byte[0],
                                    HEX.parseHex("70".repeat(300)),
                                    HEX.parseHex("74".repeat(9)));
                });
    }

    @Test
    void commandsBetweenMessagesArePassedOver() throws IOException {
        withOpenPeer(
                "04070450494e470000" + "0001aa",
                connection ->
                        assertThat(connection.receive()).containsExactly(new byte[] {(byte) 0xaa}));
    }

    @Test
    void theEndOfTheStreamBetweenMessagesIsNoError() throws IOException {
        withOpenPeer("", connection -> assertThat(connection.receive()).isNull());
    }

    @Test
    void aPeerThatIsNotZeroMqIsRefused() throws IOException {
        String error = "0409" + "054552524f52" + "000000";
        String shortCommand = "0405" + "0552454144";
        Map<String, String> greetings =
                Map.of(
                        "00".repeat(64) + REQ_READY,
                        "no ZMTP signature",
                        "ff" + REST_OF_GREETING + "00".repeat(9) + REQ_READY,
                        "no ZMTP signature",
                        HEX.formatHex("GET / HTTP/1.1\r\n".getBytes(US_ASCII)).repeat(4),
                        "no ZMTP signature",
                        SIGNATURE + "02" + REST_OF_GREETING.substring(2) + REQ_READY,
                        "version 2 is older than 3",
                        SIGNATURE + "0300" + "504c41494e" + "00".repeat(47) + REQ_READY,
                        "security mechanism",
                        SIGNATURE + REST_OF_GREETING + error,
                        "no READY command",
                        SIGNATURE + REST_OF_GREETING + shortCommand,
                        "no READY command",
                        SIGNATURE + REST_OF_GREETING + REQUEST,
                        "not the expected command");
        for (Map.Entry<String, String> greeting : greetings.entrySet()) {
            withPeer(
                    socket -> {
                        send(socket, greeting.getKey());
                        String _ = receive(socket, 1_000);
                    },
                    connection -> {
                        assertThatExceptionOfType(ProtocolException.class)
                                .isThrownBy(() -> connection.open("ROUTER"))
                                .withMessageContaining(greeting.getValue());
                        connection.close();
                    });
        }
    }

    @Test
    void aMessageMayHaveAllFramesAndAllBytesThatTheLimitsAllow() throws IOException {
        withOpenPeer(
                "0100".repeat(7) + "0000",
                connection -> assertThat(connection.receive()).hasSize(8));
        withOpenPeer(
                "0100".repeat(8) + "0000",
                connection ->
                        assertThatExceptionOfType(ProtocolException.class)
                                .isThrownBy(connection::receive)
                                .withMessageContaining("more than 8 frames"));
        withOpenPeer(
                "020000000000000200" + "aa".repeat(512),
                connection ->
                        assertThat(connection.receive())
                                .singleElement()
                                .satisfies(frame -> assertThat(frame).hasSize(512)));
    }

    @Test
    void aFrameIsSentWithAShortLengthAsLongAsOneByteHoldsIt() throws IOException {
        withPeer(
                socket -> {
                    assertThat(receive(socket, 2 + 255)).isEqualTo("01ff" + "70".repeat(255));
                    assertThat(receive(socket, 9 + 256))
                            .isEqualTo("020000000000000100" + "70".repeat(256));
                },
                connection ->
                        connection.send(
                                List.of(
                                        HEX.parseHex("70".repeat(255)),
                                        HEX.parseHex("70".repeat(256)))));
    }

    @Test
    void aPeerThatFallsSilentAfterTheGreetingIsGivenUpAtTheNewDeadline() throws IOException {
        withPeer(
                socket -> {
                    send(socket, SIGNATURE + REST_OF_GREETING + REQ_READY);
                    String _ = receive(socket, 1_000);
                },
                connection -> {
                    connection.open("ROUTER");
                    connection.setDeadline(System.nanoTime() + Duration.ofMillis(50).toNanos());
                    assertThatExceptionOfType(SocketTimeoutException.class)
                            .isThrownBy(connection::receive);
                    connection.close();
                });
    }

    @Test
    void framesThatBreakTheProtocolAreRefused() throws IOException {
        for (String bytes :
                List.of(
                        "08",
                        "ff00",
                        "0500",
                        "02ffffffffffffffff",
                        "020000000100000000",
                        "027fffffffffffffff",
                        "0002aa",
                        "01",
                        "0100".repeat(9),
                        "04ff",
                        "060000000000000fff")) {
            withOpenPeer(
                    bytes,
                    connection ->
                            assertThatExceptionOfType(ProtocolException.class)
                                    .as(bytes)
                                    .isThrownBy(connection::receive));
        }
    }

    @Test
    void allFramesOfAMessageTogetherAreBounded() throws IOException {
        withOpenPeer(
                "01ff" + "aa".repeat(255) + "01ff" + "aa".repeat(255) + "00ff",
                connection ->
                        assertThatExceptionOfType(ProtocolException.class)
                                .isThrownBy(connection::receive)
                                .withMessageContaining("limit 2"));
    }

    @Test
    void aSilentPeerIsGivenUpAtTheDeadline() throws IOException {
        withPeer(
                socket -> receive(socket, 65),
                connection -> {
                    connection.setDeadline(System.nanoTime() + Duration.ofMillis(50).toNanos());
                    assertThatExceptionOfType(SocketTimeoutException.class)
                            .isThrownBy(() -> connection.open("ROUTER"));
                    connection.close();
                });
    }

    private interface Check {
        void run(ZmtpConnection connection) throws IOException;
    }

    private static void withOpenPeer(String bytes, Check check) throws IOException {
        withPeer(
                socket -> {
                    send(socket, SIGNATURE + REST_OF_GREETING + REQ_READY + bytes);
                    receive(socket, 64 + ROUTER_READY.length() / 2);
                    socket.shutdownOutput();
                },
                connection -> {
                    connection.open("ROUTER");
                    check.run(connection);
                });
    }

    private static void withPeer(Dialogue peer, Check check) throws IOException {
        Throwable[] failure = new Throwable[1];
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread thread =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try (Socket socket = server.accept()) {
                                            peer.run(socket);
                                        } catch (IOException | AssertionError e) {
                                            failure[0] = e;
                                        }
                                    });
            try (ZmtpConnection connection =
                    new ZmtpConnection(
                            new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort()),
                            512)) {
                connection.setDeadline(System.nanoTime() + Duration.ofSeconds(20).toNanos());
                check.run(connection);
            }
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        if (failure[0] instanceof AssertionError error) {
            throw error;
        }
    }

    private static void send(Socket socket, String hex) throws IOException {
        socket.getOutputStream().write(HEX.parseHex(hex));
    }

    private static String receive(Socket socket, int bytes) throws IOException {
        return HEX.formatHex(socket.getInputStream().readNBytes(bytes));
    }
}
