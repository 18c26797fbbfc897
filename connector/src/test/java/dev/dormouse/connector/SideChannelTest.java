package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The side channel over real sockets on loopback, with good and hostile peers. */
final class SideChannelTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final RankId RANK = new RankId(0, 0);
    private static final byte[] PAYLOAD =
            new HandshakePayload("0".repeat(64), new byte[1000], 3, "i").encode();

    private static final long EPOCH = 3;
    private static final Subscription.Reader READER =
            new Subscription.Reader("D", "di", new SideChannelAddress("127.0.0.1", 5600));

    private final HoldBook holds = new HoldBook("i", SideChannelTest::clock);
    private final SideChannelDesk desk =
            new SideChannelDesk("P", "i", SideChannelTest::clock, holds);
    private final SideChannelListener listener =
            new SideChannelListener(new SideChannelAddress("127.0.0.1", 0), desk);
    private final SideChannelAddress address = new SideChannelAddress("127.0.0.1", listener.port());
    private final SideChannelClient client = new SideChannelClient(PeerPolicy.ANY);

    @AfterEach
    void close() {
        client.close();
        listener.close();
        listener.close();
    }

    @Test
    void eachRankGetsItsPayload() {
        RankId other = new RankId(0, 1);
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD, other, new byte[] {1}));
        assertThat(ask(address, List.of(other, RANK), List.of(), LIMIT).payloads())
                .containsExactly(new byte[] {1}, PAYLOAD);
    }

    @Test
    void theReplyHasExactlyPayloadAndTimestamp() throws IOException {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        assertThat(ask(List.of(new byte[0], HandshakeRequest.encode(RANK))))
                .containsExactly(new byte[0], PAYLOAD, new WireWriter().float64(12_345.5).bytes());
    }

    @Test
    void newPayloadsAreServedAtOnceAndWithdrawnOnesAreRefusedAtOnce() {
        byte[] refusal = ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst();
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HandshakePayload.decode(refusal))
                .withMessageContaining("asleep");
        for (byte generation = 1; generation < 20; generation++) {
            desk.serve(EPOCH, Map.of(RANK, new byte[] {generation}));
            assertThat(ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                    .containsExactly(generation);
        }
        desk.serve(EPOCH, Map.of());
        assertThat(ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(refusal);
    }

    @Test
    void anUnknownRankIsRefusedAtOnce() {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        byte[] refusal =
                ask(address, List.of(new RankId(0, 7)), List.of(), LIMIT).payloads().getFirst();
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HandshakePayload.decode(refusal))
                .withMessageContaining("tpRank=7");
    }

    @Test
    void connectionsAreBoundedAndTheOldestGoesFirst() throws IOException {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        List<Socket> idle = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            idle.add(new Socket(InetAddress.getLoopbackAddress(), listener.port()));
        }
        assertThat(ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(PAYLOAD);
        Socket oldest = idle.getFirst();
        oldest.setSoTimeout(3_000); // idle ones would go after five seconds
        assertThat(oldest.getInputStream().readAllBytes()).hasSizeLessThanOrEqualTo(64);
        for (Socket socket : idle) {
            socket.close();
        }
    }

    @Test
    void closingEndsTheConnectionsThatAreOpen() throws IOException {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        try (SideChannel.Conversation open = client.dial(address, LIMIT)) {
            assertThat(open.ask(HandshakeRequest.encode(RANK)).body()).isEqualTo(PAYLOAD);
            listener.close();
            assertThatThrownBy(() -> open.ask(HandshakeRequest.encode(RANK)))
                    .isInstanceOfAny(IOException.class, WireException.class)
                    .hasMessageNotContaining("in time");
        }
    }

    @Test
    void malformedMessagesAreDroppedAndTheConnectionLives() throws IOException {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        byte[] good = HandshakeRequest.encode(RANK);
        byte[] constant = "get_meta_msg".getBytes(UTF_8);
        byte[] empty = {};
        byte[] javaObject =
                HexFormat.of().parseHex("aced0005737200116a6176612e7574696c2e486173684d6170");
        try (ZmtpConnection connection = connect()) {
            for (List<byte[]> message :
                    List.of(
                            List.of(empty),
                            List.of(good),
                            List.of(good, good),
                            List.of(empty, good, good),
                            List.of(empty, empty),
                            List.of(empty, new byte[] {(byte) 0xc1}),
                            List.of(empty, javaObject),
                            List.of(
                                    empty,
                                    new WireWriter().array(2).binary(constant).integer(0).bytes()),
                            List.of(
                                    empty,
                                    new WireWriter()
                                            .array(3)
                                            .string("get_meta_msg")
                                            .integer(0)
                                            .integer(0)
                                            .bytes()),
                            List.of(empty, new byte[HandshakeRequest.MAX_BYTES + 1]))) {
                connection.send(message);
            }
            connection.send(List.of(empty, good));
            assertThat(connection.receive()).element(1).isEqualTo(PAYLOAD);
        }
    }

    @Test
    void anOversizedMessageEndsItsConnectionOnly() throws IOException {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        try (ZmtpConnection connection = connect()) {
            connection.send(List.of(new byte[0], new byte[100_000]));
            assertThatThrownBy(
                            () -> {
                                if (connection.receive() == null) {
                                    throw new IOException("closed");
                                }
                            })
                    .isInstanceOf(IOException.class);
        }
        assertThat(ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                .isEqualTo(PAYLOAD);
    }

    @Test
    void randomBytesOnThePortDoNotEndTheListener() {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        byte[] greeting = new byte[64];
        greeting[0] = (byte) 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3;
        System.arraycopy("NULL".getBytes(UTF_8), 0, greeting, 12, 4);
        Seeded.forAll(
                60,
                random -> {
                    byte[] noise = new byte[random.nextInt(1, 600)];
                    random.nextBytes(noise);
                    try (Socket socket = new Socket()) {
                        socket.connect(
                                new InetSocketAddress(
                                        InetAddress.getLoopbackAddress(), listener.port()),
                                5_000);
                        if (random.nextBoolean()) {
                            socket.getOutputStream().write(greeting);
                        }
                        socket.getOutputStream().write(noise);
                        socket.getOutputStream().flush();
                    } catch (IOException closedByTheListener) {
                        assertThat(closedByTheListener).isNotNull();
                    }
                });
        byte[] fourGigabytes = {2, 0, 0, 0, 1, 0, 0, 0, 0};
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), listener.port())) {
            socket.getOutputStream().write(greeting);
            socket.getOutputStream().write(fourGigabytes);
            socket.getOutputStream().write(new byte[100]);
        } catch (IOException closedByTheListener) {
            assertThat(closedByTheListener).isNotNull();
        }
        for (int i = 0; i < 3; i++) {
            assertThat(ask(address, List.of(RANK), List.of(), LIMIT).payloads().getFirst())
                    .isEqualTo(PAYLOAD);
        }
    }

    @Test
    void aSecondListenerOnThePortIsRefusedWithHostPortAndSetting() {
        SideChannelAddress taken = new SideChannelAddress("localhost", listener.port());
        assertThatExceptionOfType(SideChannelException.class)
                .isThrownBy(() -> new SideChannelListener(taken, desk))
                .withMessageContaining("localhost:" + listener.port())
                .withMessageContaining("--side-channel-port");
    }

    @Test
    void aHostThatIsNotOursIsRefused() {
        for (String host : List.of("192.0.2.1", "no-such-host.invalid")) {
            assertThatExceptionOfType(SideChannelException.class)
                    .isThrownBy(
                            () -> new SideChannelListener(new SideChannelAddress(host, 0), desk))
                    .withMessageContaining(host)
                    .withMessageContaining("--side-channel-host");
        }
    }

    @Test
    void closingFreesThePort() throws IOException {
        int port = listener.port();
        ask(address, List.of(RANK), List.of(), LIMIT).payloads();
        listener.close();
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            assertThat(socket.isBound()).isTrue();
        }
    }

    @Test
    void aSilentPeerFailsAtTheLimitAndSaysWhere() throws IOException {
        try (ServerSocket silent = new ServerSocket(0)) {
            SideChannelAddress peer = new SideChannelAddress("127.0.0.1", silent.getLocalPort());
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(
                            () ->
                                    ask(peer, List.of(RANK), List.of(), Duration.ofMillis(150))
                                            .payloads())
                    .withMessageContaining(peer.toString())
                    .withMessageContaining("PT0.15S");
        }
    }

    @Test
    void aReplyOfTheWrongShapeIsRefused() throws IOException {
        byte[] empty = {};
        for (List<byte[]> reply :
                List.of(
                        List.of(PAYLOAD),
                        List.of(PAYLOAD, PAYLOAD),
                        List.of(empty, PAYLOAD),
                        List.of(PAYLOAD, PAYLOAD, PAYLOAD),
                        List.of(empty, PAYLOAD, PAYLOAD, PAYLOAD))) {
            try (OtherPeer peer = new OtherPeer(reply)) {
                assertThatExceptionOfType(WireException.class)
                        .isThrownBy(
                                () ->
                                        ask(peer.address(), List.of(RANK), List.of(), LIMIT)
                                                .payloads())
                        .withMessageContaining("handshake reply");
            }
        }
    }

    @Test
    void questionsAboutRequestsAreAnsweredOnTheSameConnection() {
        holds.begin(3);
        holds.hold("held", 12_345_500_000_000L + Duration.ofSeconds(10).toNanos());
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        long before = System.nanoTime();
        HandshakeAnswers answers =
                ask(
                        address,
                        List.of(RANK),
                        List.of(new HoldQuestion("held", "di"), new HoldQuestion("not:held", "di")),
                        LIMIT);
        HoldAnswer held =
                Objects.requireNonNull(answers.holds().get(new HoldQuestion("held", "di")));
        HoldAnswer not =
                Objects.requireNonNull(answers.holds().get(new HoldQuestion("not:held", "di")));
        assertThat(held.confirms(new RegistrationIdentity("i", 3, 3))).isTrue();
        assertThat(held.untilNanos() - before).isPositive();
        assertThat(held.confirms(new RegistrationIdentity("i", 4, 4))).isFalse();
        assertThat(held.confirms(new RegistrationIdentity("other", 3, 3))).isFalse();
        assertThat(held.confirms(new RegistrationIdentity("i", 3, 4))).isFalse();
        assertThat(not.confirms(new RegistrationIdentity("i", 3, 3))).isFalse();
        ClockOffset clock = Objects.requireNonNull(answers.clock());
        assertThat(clock.toLocal(12_345.5)).isBetween(before, System.nanoTime());
    }

    @Test
    void claimsFollowOneAnotherOverOneConnection() {
        holds.hold("r", clock());
        for (int i = 0; i < 3; i++) {
            assertThat(claim().held()).isTrue();
            assertThat(listener.connections()).isOne();
        }
    }

    @Test
    void aClaimConnectsAnewToAPeerThatHasClosedTheConnectionOfTheLastOne() {
        holds.hold("r", clock());
        assertThat(claim().held()).isTrue();
        listener.close();
        try (SideChannelListener _ = new SideChannelListener(address, desk)) {
            assertThat(claim().held()).isTrue();
        }
    }

    private HoldAnswer claim() {
        HoldQuestion claim = new HoldQuestion("r", "di");
        return Objects.requireNonNull(
                new HandshakeClient(client, System::nanoTime)
                        .claim(address, new OpenClaims(List.of(claim)), LIMIT)
                        .get(claim));
    }

    @Test
    void aPeerThatTellsNoInstanceIsNeverAskedAboutRequests() {
        byte[] vllms = new HandshakePayload("0".repeat(64), new byte[10], 0, null).encode();
        desk.serve(EPOCH, Map.of(RANK, vllms));
        HandshakeAnswers answers =
                ask(address, List.of(RANK), List.of(new HoldQuestion("r", "di")), LIMIT);
        assertThat(answers.holds()).isEmpty();
        assertThat(answers.payloads()).containsExactly(vllms);
    }

    @Test
    void aTimestampThatIsNoneIsRefused() throws IOException {
        byte[] empty = {};
        for (byte[] timestamp :
                List.of(
                        empty,
                        new WireWriter().integer(5).bytes(),
                        new WireWriter().float64(Double.NaN).bytes(),
                        new byte[100])) {
            try (OtherPeer peer = new OtherPeer(List.of(empty, PAYLOAD, timestamp))) {
                assertThatExceptionOfType(WireException.class)
                        .isThrownBy(
                                () ->
                                        ask(peer.address(), List.of(RANK), List.of(), LIMIT)
                                                .payloads())
                        .withMessageContaining("timestamp");
            }
        }
    }

    @Test
    void damagedHoldAnswersAreRefused() {
        byte[] good = HoldAnswer.encode("r", 3, false, 5, "i");
        Seeded.forAll(
                300,
                random -> {
                    byte[] damaged = good.clone();
                    damaged[random.nextInt(damaged.length)] ^= (byte) (1 << random.nextInt(8));
                    try {
                        HoldAnswer answer =
                                HoldAnswer.decode(damaged, new HoldQuestion("r", "di"), 0);
                        assertThat(answer.instanceId()).isNotNull();
                    } catch (WireException e) {
                        assertThat(e).hasMessageContaining("hold answer");
                    }
                });
    }

    @Test
    void aReaderSubscribesOnTheConnectionOnWhichItWasGivenThePayloads() {
        desk.serve(EPOCH, Map.of(RANK, PAYLOAD));
        ask(address, List.of(RANK), List.of(), LIMIT);
        assertThat(desk.anonymousReaders()).isEqualTo(1);
        HandshakeAnswers _ =
                new HandshakeClient(client, System::nanoTime)
                        .ask(address, List.of(RANK), new OpenClaims(List.of()), READER, LIMIT);
        assertThat(desk.readers()).containsExactly(READER);
        assertThat(desk.anonymousReaders()).isEqualTo(1);
    }

    @Test
    void aHandshakeThatNeverSubscribesToWhatIsServedFails() {
        desk.serve(EPOCH + 1, Map.of(RANK, PAYLOAD)); // which says that it is of EPOCH
        HandshakeClient asking = new HandshakeClient(client, System::nanoTime);
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(
                        () ->
                                asking.ask(
                                        address,
                                        List.of(RANK),
                                        new OpenClaims(List.of()),
                                        READER,
                                        LIMIT))
                .withMessageContaining("published anew");
        assertThat(desk.readers()).isEmpty();
    }

    @Test
    void aRevocationIsAnsweredWhenTheRanksAreDone() throws IOException {
        Revocation revocation = new Revocation("P", "pi", 5, 99);
        assertThat(revoke(revocation).done()).isFalse();
        assertThat(desk.revocations().take()).containsExactly(revocation);
        assertThat(revoke(revocation).done()).isFalse();
        desk.revocations().done(Set.of(revocation.id()));
        assertThat(revoke(revocation)).isEqualTo(new DemandReply("P", "i", true));
        assertThat(revoke(new Revocation("P", "pi", 5, 100)).done()).isFalse();
    }

    private DemandReply revoke(Revocation revocation) throws IOException {
        try (SideChannel.Conversation conversation = client.dial(address, LIMIT)) {
            return DemandReply.decode(conversation.ask(revocation.encode()).body());
        }
    }

    @Test
    void damagedQuestionsAndAnswersOfRevocationsAreRefusedOrMeanWhatTheySay() {
        byte[][] good = {
            new Subscription(READER, 7).encode(),
            Subscription.answer(true),
            new Revocation("P", "pi", 7, 1).encode(),
            new DemandReply("P", "i", true).encode()
        };
        Seeded.forAll(
                1_000,
                random -> {
                    int which = random.nextInt(good.length);
                    byte[] bytes = good[which].clone();
                    if (random.nextInt(4) == 0) {
                        bytes = Arrays.copyOf(bytes, random.nextInt(2 * bytes.length));
                    } else {
                        bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
                    }
                    try {
                        switch (which) {
                            case 0 -> Subscription.decode(bytes);
                            case 1 -> Subscription.isAccepted(bytes);
                            case 2 -> Revocation.decode(bytes);
                            default -> DemandReply.decode(bytes);
                        }
                    } catch (WireException e) {
                        assertThat(e).hasMessageStartingWith("decode ");
                    }
                });
    }

    /** vLLM's listener answers an unknown constant with a payload, and ends at any other shape. */
    @Test
    void ownQuestionsHaveTheShapeOfAHandshakeSoThatNoListenerOfVllmEnds() {
        for (byte[] question :
                List.of(
                        new HoldQuestion("r", "di d1").encode(),
                        new Subscription(READER, 7).encode(),
                        new Revocation("P", "pi", 7, 1).encode())) {
            WireReader in = new WireReader("question", question, question.length);
            assertThat(in.arraySize("question", 3)).isEqualTo(3);
            assertThat(new String(in.binary("constant", question.length), UTF_8))
                    .startsWith("dormouse_");
            assertThat(in.integer("pp_rank", 0, 9)).isZero();
            assertThat(in.integer("tp_rank", 0, 9)).isZero();
            in.end();
        }
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HoldAnswer.decode(PAYLOAD, new HoldQuestion("r", "di"), 0));
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> DemandReply.decode(PAYLOAD));
        assertThat(Subscription.isAccepted(PAYLOAD)).isFalse();
    }

    @Test
    void aSubscriptionNamesSomebodyWhoCanBeReached() {
        for (String host : List.of("0.0.0.0", "::", "*")) {
            byte[] bytes =
                    OwnQuestion.encode(
                            "dormouse_subscribe",
                            new WireWriter()
                                    .map(4)
                                    .string("engine_id")
                                    .string("D")
                                    .string("instance_id")
                                    .string("di")
                                    .string("host")
                                    .string(host)
                                    .string("port")
                                    .integer(5600)
                                    .bytes());
            assertThatExceptionOfType(WireException.class)
                    .as(host)
                    .isThrownBy(() -> Subscription.decode(bytes));
        }
    }

    @Test
    void hostsThatAreNoNamesAreRefused() {
        for (String host :
                List.of("", "a b", "127.0.0.1:1;127.0.0.1", "*", "../x", "h\n", "[::1]", "h/x")) {
            assertThatExceptionOfType(ConnectorException.class)
                    .as(host)
                    .isThrownBy(() -> new SideChannelAddress(host, 1));
        }
        assertThat(new SideChannelAddress("::1", 5)).hasToString("[::1]:5");
    }

    @Test
    void wildcardsAreRecognised() {
        assertThat(List.of("0.0.0.0", "::", "*", "", "0", "0:0:0:0:0:0:0:0", "00.0.0.0"))
                .allMatch(SideChannelAddress::isWildcard);
        assertThat(List.of("127.0.0.1", "::1", "localhost", "10.0.0.0", "host0"))
                .noneMatch(SideChannelAddress::isWildcard);
    }

    private static long clock() {
        return 12_345_500_000_000L;
    }

    private HandshakeAnswers ask(
            SideChannelAddress peer,
            List<RankId> ranks,
            List<HoldQuestion> claims,
            Duration limit) {
        return new HandshakeClient(client, System::nanoTime)
                .ask(peer, ranks, new OpenClaims(claims), null, limit);
    }

    private List<byte[]> ask(List<byte[]> message) throws IOException {
        try (ZmtpConnection connection = connect()) {
            connection.send(message);
            return Objects.requireNonNull(connection.receive());
        }
    }

    private ZmtpConnection connect() throws IOException {
        ZmtpConnection connection =
                new ZmtpConnection(
                        new Socket(InetAddress.getLoopbackAddress(), listener.port()), 1 << 20);
        connection.setDeadline(System.nanoTime() + Duration.ofSeconds(20).toNanos());
        connection.open("DEALER");
        return connection;
    }

    /** A peer that answers its first message with these frames. */
    private static final class OtherPeer implements AutoCloseable {
        private final ServerSocket server;
        private final Thread thread;

        OtherPeer(List<byte[]> frames) throws IOException {
            server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            thread =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try (ZmtpConnection connection =
                                                new ZmtpConnection(server.accept(), 1 << 20)) {
                                            connection.setDeadline(
                                                    System.nanoTime()
                                                            + Duration.ofSeconds(20).toNanos());
                                            connection.open("ROUTER");
                                            connection.receive();
                                            connection.send(frames);
                                            connection.receive();
                                        } catch (IOException e) {
                                            throw new UncheckedIOException(e);
                                        }
                                    });
        }

        SideChannelAddress address() {
            return new SideChannelAddress("127.0.0.1", server.getLocalPort());
        }

        @Override
        public void close() throws IOException {
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            server.close();
        }
    }
}
