package dev.dormouse.transport.local;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What peers may send to an owner, and what they may hold. */
class HostileReaderTest {
    private static final long BYTES = 1 << 20;
    private static final Limits LIMITS =
            new Limits(
                    Duration.ofSeconds(60), Duration.ofSeconds(20), 16, 64, Duration.ofMinutes(1));
    private static final Limits IMPATIENT =
            new Limits(
                    Duration.ofMillis(100), Duration.ofSeconds(20), 16, 64, Duration.ofMinutes(1));
    private static final String THIS_PROCESS = "process " + ProcessHandle.current().pid();

    private MemfdNode owner;
    private Registration registration;
    private LocalMetadata metadata;

    @BeforeEach
    void register() {
        owner = new MemfdNode(SegmentAccess.READ, LIMITS);
        long address = owner.allocate(BYTES);
        registration =
                owner.transport()
                        .register(List.of(new MemoryRange(address, BYTES, MemoryKind.DRAM, 0)));
        metadata = LocalMetadata.decode(owner.transport().metadata().sameHost());
    }

    @AfterEach
    void close() {
        owner.close();
    }

    private Frame.Hello hello() {
        return new Frame.Hello(metadata.incarnation(), "raw", metadata.registrations());
    }

    private RawPeer connect() {
        return RawPeer.connect(metadata);
    }

    /** A good reader is served. */
    private void assertServes() {
        try (MemfdNode reader = new MemfdNode()) {
            reader.transport().load(owner.transport().metadata()).close();
        }
    }

    private String refusalOf(Frame.Hello hello) {
        try (RawPeer raw = connect()) {
            raw.send(hello);
            return ((Frame.Refusal) Frame.decode(raw.receive().bytes())).reason();
        }
    }

    @Test
    void framesThatAreNoneEndTheConnection() {
        byte[] good = hello().encode();
        Seeded.forAll(
                100,
                random -> {
                    byte[] bytes = good.clone();
                    if (random.nextBoolean()) {
                        bytes = Arrays.copyOf(bytes, random.nextInt(1, bytes.length));
                    } else {
                        bytes = new byte[random.nextInt(1, 300)];
                        random.nextBytes(bytes);
                    }
                    try (RawPeer raw = connect()) {
                        raw.send(bytes);
                        raw.awaitEnd();
                    }
                });
        assertThat(registration.revoke()).isEmpty();
        registration.readmit();
        assertServes();
        assertThat(owner.transport().rejectedMessages()).isPositive();
    }

    @Test
    void helloIsAnsweredOnlyForWhatIsThere() {
        Token other = Token.random();
        assertThat(refusalOf(new Frame.Hello(other, "raw", metadata.registrations())))
                .contains("another start");
        assertThat(refusalOf(new Frame.Hello(metadata.incarnation(), "raw", List.of(other))))
                .contains("registered anew");
        assertThat(registration.revoke()).isEmpty();
        assertThat(refusalOf(hello())).contains("revoked");
    }

    @Test
    void descriptorsThatNobodyAskedForAreClosed() {
        int before = ProcessCounts.now().descriptors();
        int[] many = IntStream.generate(() -> Libc.createMemoryFile("many", 0)).limit(50).toArray();
        try (RawPeer raw = connect()) {
            raw.send(hello(), many);
            raw.awaitEnd();
        }
        Arrays.stream(many).forEach(Libc::close);
        Await.until("their end", () -> ProcessCounts.now().descriptors() == before);
        assertServes();
    }

    @Test
    void whoSaysNothingIsDisconnectedAndWhoIsTooLongToo() {
        try (MemfdNode impatient = new MemfdNode(SegmentAccess.READ, IMPATIENT);
                RawPeer raw =
                        RawPeer.connect(
                                LocalMetadata.decode(
                                        impatient.transport().metadata().sameHost()))) {
            raw.awaitEnd();
        }
        try (RawPeer raw = connect()) {
            raw.send(new byte[Frame.MAX_BYTES]);
            raw.awaitEnd();
        }
    }

    @Test
    void manyConnectionsKeepNobodyOut() {
        int before = ProcessCounts.now().descriptors();
        List<RawPeer> crowd = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            crowd.add(connect());
            if (i % 500 == 0) {
                assertServes();
            }
        }
        assertServes();
        crowd.forEach(RawPeer::close);
        Await.until("their end", () -> ProcessCounts.now().descriptors() <= before);
    }

    @Test
    void noMoreHoldTheMemoryThanMay() {
        List<RawPeer> holders = new ArrayList<>();
        for (int i = 0; i < LIMITS.sessions(); i++) {
            RawPeer raw = connect();
            raw.send(hello());
            assertThat(Frame.decode(raw.receive().bytes())).isInstanceOf(Frame.Grant.class);
            holders.add(raw);
        }
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(this::assertServes)
                .withMessageContaining("too many peers");
        holders.getFirst().send(new Frame.Released()); // it stands by, and has to make room
        assertThat(registration.revoke()).hasSize(LIMITS.sessions() - 1);
        registration.readmit();
        assertServes();
        holders.getFirst().awaitEnd();
        assertThat(registration.revoke()).hasSize(LIMITS.sessions() - 1);
        holders.forEach(RawPeer::close);
    }

    @Test
    void whoOnlyClosesItsConnectionHoldsTheMemoryStill() {
        RawPeer raw = connect();
        raw.send(hello());
        raw.receive();
        raw.close();
        Await.until("nothing more", () -> registration.revoke().size() == 1);
        assertThat(registration.revoke()).singleElement().asString().contains(THIS_PROCESS);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(registration::close)
                .withMessageContaining(THIS_PROCESS);
        assertThat(LocalMetadata.decode(owner.transport().metadata().sameHost()).registrations())
                .isEqualTo(metadata.registrations());
    }

    @Test
    void whoBreaksTheRulesHoldsTheMemoryStill() {
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            raw.send(hello());
            raw.awaitEnd();
        }
        assertThat(registration.revoke()).singleElement().asString().contains(THIS_PROCESS);
    }

    @Test
    void whoHasLetGoAndSaidSoHoldsNothing() {
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            assertThat(registration.revoke()).singleElement().asString().contains("agent raw");
            assertThat(Frame.decode(raw.receive().bytes())).isEqualTo(new Frame.Revoke());
            assertThat(registration.revoke()).hasSize(1);
            raw.send(new Frame.Released());
            assertThat(registration.revoke()).isEmpty();
            registration.close();
        }
    }

    @Test
    void whoStandsByIsToldOfNewMemoryAndHoldsItOnceItHasAskedForIt() {
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            raw.send(new Frame.Released());
            assertThat(registration.revoke()).isEmpty();
            registration.close();
            registration = owner.transport().register(registration.ranges());
            metadata = LocalMetadata.decode(owner.transport().metadata().sameHost());
            SocketMessage.Received.Message offer = raw.receive();
            assertThat(Frame.decode(offer.bytes()))
                    .isEqualTo(new Frame.Offer(metadata.registrations()));
            assertThat(offer.descriptors()).isEmpty();
            assertThat(registration.revoke()).as("it has nothing yet").isEmpty();
            registration.readmit();
            assertThat(Frame.decode(raw.receive().bytes())).isInstanceOf(Frame.Offer.class);
            raw.send(hello());
            assertThat(Frame.decode(raw.receive().bytes())).isInstanceOf(Frame.Grant.class);
            assertThat(registration.revoke()).singleElement().asString().contains("agent raw");
            assertThat(Frame.decode(raw.receive().bytes())).isEqualTo(new Frame.Revoke());
        }
        Await.until("nothing more", () -> registration.revoke().size() == 1);
        assertThat(registration.revoke()).singleElement().asString().contains(THIS_PROCESS);
    }

    @Test
    void whoStandsByMaySendNothingButAQuestion() {
        for (Frame frame : List.of(new Frame.Message(true, new byte[1]), new Frame.Released())) {
            try (RawPeer raw = connect()) {
                raw.send(hello());
                raw.receive();
                raw.send(new Frame.Released());
                raw.send(frame);
                raw.awaitEnd();
            }
        }
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            raw.send(new Frame.Released());
            assertThat(registration.revoke()).isEmpty();
            raw.send(hello());
            assertThat(Frame.decode(raw.receive().bytes())).isInstanceOf(Frame.Refusal.class);
            raw.awaitEnd();
        }
        assertThat(owner.transport().messages()).isEmpty();
        registration.close();
    }

    @Test
    void memoryToReadCannotBeMappedForWriting() {
        try (RawPeer raw = connect()) {
            raw.send(hello());
            SocketMessage.Received.Message answer = raw.receive();
            assertThat(answer.descriptors()).hasSize(1);
            int file = answer.descriptors()[0];
            assertThatExceptionOfType(LibcException.class)
                    .isThrownBy(() -> Libc.map(BYTES, Libc.PROT_WRITE, Libc.MAP_SHARED, file, 0))
                    .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EACCES"));
            Libc.close(file);
        }
    }

    @Test
    void messagesThatAreTooLongAreCountedAndTheNextOnesArrive() {
        byte[] part = new byte[Frame.PART_BYTES];
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            for (int i = 0; i <= Inbox.MAX_MESSAGE_BYTES / part.length; i++) {
                raw.send(new Frame.Message(false, part));
            }
            raw.send(new Frame.Message(true, part));
            raw.send(new Frame.Message(false, "he".getBytes(UTF_8)));
            raw.send(new Frame.Message(true, "re".getBytes(UTF_8)));
            List<String> arrived = new ArrayList<>();
            Await.until(
                    "the short one",
                    () -> {
                        owner.transport()
                                .messages()
                                .forEach(each -> arrived.add(new String(each.bytes(), UTF_8)));
                        return !arrived.isEmpty();
                    });
            assertThat(arrived).containsExactly("here");
            assertThat(owner.transport().rejectedMessages()).isEqualTo(1);
        }
    }

    @Test
    void whatNobodyTakesIsBounded() {
        byte[] part = new byte[Frame.PART_BYTES];
        try (RawPeer raw = connect()) {
            raw.send(hello());
            raw.receive();
            for (int i = 0; i < 2 * Inbox.MAX_WAITING_BYTES / part.length; i++) {
                raw.send(new Frame.Message(true, part));
            }
            raw.send(new Frame.Released());
            Await.until("its word", () -> registration.revoke().isEmpty());
            assertThat(owner.transport().messages())
                    .hasSize((int) (Inbox.MAX_WAITING_BYTES / part.length) - 1);
            assertThat(owner.transport().rejectedMessages()).isPositive();
        }
    }

    @Test
    void processesOfOtherUsersAreRefusedOnBothSides() {
        Set<Integer> nobody = Set.of(65_534);
        HostIdentity host = HostIdentity.ofThisProcess();
        try (Wire wire = new Wire();
                SocketLoop loop = new SocketLoop()) {
            OwnerSide strict = new OwnerSide("strict", nobody, LIMITS, wire, loop);
            Set<Integer> everybody = Set.of(UnixSocket.user());
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> readerSide(everybody, wire, loop).load(strict.metadata(host)))
                    .withMessageContaining("does not allow this process's user");
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> readerSide(nobody, wire, loop).load(metadata))
                    .withMessageContaining("belongs to user");
            strict.close();
        }
        assertThat(registration.revoke()).isEmpty();
    }

    private static ReaderSide readerSide(Set<Integer> users, Wire wire, SocketLoop loop) {
        return new ReaderSide("reader", users, LIMITS, null, wire, loop, _ -> {});
    }
}
