package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A reader, and an owner that answers whatever a test wants. */
abstract class OwnerFixture {
    static final long BYTES = 1 << 20;
    static final long ADDRESS = 0x7000_0000_0000L;
    static final int FIXED = MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW;
    private static final Limits LIMITS =
            new Limits(
                    Duration.ofSeconds(20), Duration.ofSeconds(20), 16, 64, Duration.ofMinutes(1));

    final Token incarnation = Token.random();
    private final String socketName = "dormouse-test-" + Token.random();
    final LocalMetadata metadata =
            new LocalMetadata(
                    HostIdentity.ofThisProcess(),
                    incarnation,
                    socketName,
                    "hostile",
                    List.of(Token.random()));
    final int listener = UnixSocket.listen(socketName, 8);
    CountDownLatch last = new CountDownLatch(0);
    MemfdNode reader;
    ProcessCounts before;

    @BeforeEach
    void open() {
        reader = new MemfdNode(SegmentAccess.READ, LIMITS);
        before = ProcessCounts.now();
    }

    @AfterEach
    void close() {
        reader.close();
        Libc.close(listener);
    }

    /** Loads from an owner that answers as told, and goes on as told. */
    RemotePeer load(Consumer<RawPeer> answer) {
        serve(answer);
        return reader.transport().load(TransportMetadata.ofSameHost(metadata.encode()));
    }

    void serve(Consumer<RawPeer> answer) {
        last = RawPeer.answerNext(listener, answer);
    }

    void assertRefused(String why, Consumer<RawPeer> answer) {
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> load(answer))
                .withMessageContaining(why);
        Await.until("the owner's end", () -> last.getCount() == 0);
        Await.until("nothing is left", () -> ProcessCounts.now().equals(before));
    }

    Frame.Grant grant(int files, long offset, long length) {
        return new Frame.Grant(
                incarnation,
                "hostile",
                true,
                new SharedMemory.HostFiles(files),
                List.of(new SharedSegment(ADDRESS, length, 0, offset)));
    }

    /** A file that is closed once its receiver has it. */
    static void with(int file, Consumer<Integer> use) {
        try {
            use.accept(file);
        } finally {
            Libc.close(file);
        }
    }

    static int file(int seals) {
        int file = Libc.createMemoryFile("hostile", Libc.MFD_ALLOW_SEALING);
        Libc.allocate(file, 0, 0, BYTES);
        MemoryFile.seal(file, seals);
        return file;
    }

    /** Answers well. */
    void give(RawPeer raw) {
        with(file(FIXED), file -> raw.send(grant(1, 0, BYTES), file));
    }
}
