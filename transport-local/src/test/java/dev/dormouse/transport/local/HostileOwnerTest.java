package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** What an owner may answer to a reader. */
class HostileOwnerTest extends OwnerFixture {
    private static final Limits IMPATIENT =
            new Limits(
                    Duration.ofSeconds(20), Duration.ofMillis(200), 16, 64, Duration.ofMinutes(1));

    @Test
    void filesThatCouldLoseTheirPagesAreNotMapped() {
        assertRefused(
                "not sealed",
                raw ->
                        with(
                                file(MemoryFile.F_SEAL_GROW),
                                file -> raw.send(grant(1, 0, BYTES), file)));
        assertRefused(
                "map a peer's memory failed",
                raw ->
                        with(
                                UnixSocket.listen("dormouse-test-" + Token.random(), 1),
                                file -> raw.send(grant(1, 0, BYTES), file)));
    }

    @Test
    void filesThatAreTooShortOrHaveHolesAreNotMapped() {
        assertRefused(
                "is said to have",
                raw -> with(file(FIXED), file -> raw.send(grant(1, 1, BYTES), file)));
        assertRefused(
                "is said to have",
                raw ->
                        with(
                                file(FIXED),
                                file -> raw.send(grant(1, Long.MAX_VALUE - BYTES, BYTES), file)));
        assertRefused(
                "is said to have",
                raw ->
                        with(
                                Libc.createMemoryFile("holes", Libc.MFD_ALLOW_SEALING),
                                file -> {
                                    Libc.truncate(file, BYTES);
                                    MemoryFile.seal(file, FIXED);
                                    raw.send(grant(1, 0, BYTES), file);
                                }));
    }

    @Test
    void asManyFilesMustComeAsAreTold() {
        assertRefused(
                "2 files came, and 1 were told",
                raw -> with(file(FIXED), file -> raw.send(grant(1, 0, BYTES), file, file)));
        assertRefused("0 files came", raw -> raw.send(grant(1, 0, BYTES)));
        assertRefused(
                "a file came along that holds nothing",
                raw -> with(file(FIXED), file -> raw.send(grant(2, 0, BYTES), file, file)));
    }

    /** A part of an answer, with as many descriptors of one file as it tells. */
    private void sendPart(RawPeer raw, SharedMemory memory, List<SharedSegment> segments) {
        with(
                file(FIXED),
                file -> {
                    int[] files = new int[memory.count()];
                    Arrays.fill(files, file);
                    raw.send(
                            new Frame.Grant(incarnation, "hostile", false, memory, segments),
                            files);
                });
    }

    @Test
    void partsOfAnAnswerAreBoundedAndOfOneKind() {
        SharedMemory most = new SharedMemory.HostFiles(Frame.MAX_PART_DESCRIPTORS);
        assertRefused(
                "too long",
                raw -> {
                    for (int i = 0; i < 3; i++) {
                        sendPart(raw, most, List.of());
                    }
                });
        SharedSegment segment = new SharedSegment(ADDRESS, BYTES, 0, 0);
        assertRefused(
                "too long",
                raw -> {
                    for (int i = 0; i < 2; i++) {
                        sendPart(
                                raw,
                                new SharedMemory.HostFiles(1),
                                Collections.nCopies(Frame.MAX_SEGMENTS, segment));
                    }
                });
        assertRefused(
                "gives nothing", raw -> sendPart(raw, new SharedMemory.HostFiles(0), List.of()));
        assertRefused(
                "in file 1 of 1", raw -> with(file(FIXED), file -> raw.send(grantOf(1, 1), file)));
        assertRefused(
                "of one kind",
                raw -> {
                    sendPart(raw, new SharedMemory.HostFiles(1), List.of());
                    with(file(FIXED), file -> raw.send(grantOf(pieces(1), 0), file));
                });
    }

    @Test
    void deviceMemoryIsRefusedByAnAgentWithoutADevice() {
        assertRefused(
                "this agent has no device",
                raw -> with(file(FIXED), file -> raw.send(grantOf(pieces(1), 0), file)));
    }

    private static SharedMemory pieces(int count) {
        return new SharedMemory.DevicePieces(
                new UUID(1, 2), false, Collections.nCopies(count, 2L << 20));
    }

    private Frame.Grant grantOf(int files, int file) {
        return grantOf(new SharedMemory.HostFiles(files), file);
    }

    private Frame.Grant grantOf(SharedMemory memory, int file) {
        return new Frame.Grant(
                incarnation,
                "hostile",
                true,
                memory,
                List.of(new SharedSegment(ADDRESS, BYTES, file, 0)));
    }

    @Test
    void answersThatAreNoneAreRefused() {
        assertRefused("read frame failed", raw -> raw.send(new byte[] {77}));
        assertRefused("it answered Released", raw -> raw.send(new Frame.Released()));
        assertRefused("because", raw -> raw.send(new Frame.Refusal("because")));
        assertRefused(
                "another agent answered",
                raw ->
                        raw.send(
                                new Frame.Grant(
                                        Token.random(),
                                        "hostile",
                                        true,
                                        new SharedMemory.HostFiles(0),
                                        List.of())));
        assertRefused("it ended the connection", _ -> {});
    }

    @Test
    void anOwnerThatSaysNothingIsNotWaitedForWithoutEndAndBeforeALoadIfThatIsPrepared() {
        List<Frame> said = new ArrayList<>();
        serve(
                raw -> {
                    said.add(Frame.decode(raw.receive().bytes()));
                    raw.awaitEnd();
                });
        TransportMetadata told = TransportMetadata.ofSameHost(metadata.encode());
        try (MemfdNode impatient = new MemfdNode(SegmentAccess.READ, IMPATIENT)) {
            impatient.transport().prepareLoad(told);
            assertThat(said).as("it still waits").isEmpty();
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> impatient.transport().load(told))
                    .withMessageContaining("no answer came within 200 ms");
            assertThat(UnixSocket.accept(listener)).as("a second connection").isEmpty();
        }
        Await.until("the owner's end", () -> last.getCount() == 0);
        assertThat(said).containsExactly(new Frame.Released());
    }

    @Test
    void aReaderThatGivesUpSaysThatItHoldsNothing() {
        Frame[] said = new Frame[1];
        assertRefused(
                "not sealed",
                raw ->
                        with(
                                file(0),
                                file -> {
                                    raw.send(grant(1, 0, BYTES), file);
                                    said[0] = Frame.decode(raw.receive().bytes());
                                }));
        assertThat(said[0]).isEqualTo(new Frame.Released());
    }

    @Test
    void messagesToAnOwnerThatDoesNotReadAreBounded() {
        CountDownLatch sent = new CountDownLatch(1);
        RemotePeer peer =
                load(
                        raw ->
                                with(
                                        file(FIXED),
                                        file -> {
                                            raw.send(grant(1, 0, BYTES), file);
                                            Await.until("messages", () -> sent.getCount() == 0);
                                        }));
        byte[] message = new byte[Inbox.MAX_MESSAGE_BYTES];
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(
                        () -> {
                            for (int i = 0; i < 20; i++) {
                                reader.transport().notify(peer, message);
                            }
                        })
                .withMessageContaining("may be stopped");
        sent.countDown();
        peer.close();
        Await.until("nothing is left", () -> ProcessCounts.now().equals(before));
    }
}
