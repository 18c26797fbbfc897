package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.PhysicalMemory;
import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A reader whose memory is a device's, and an owner who answers whatever a test wants. */
abstract class DeviceReaderFixture {
    /** Where the owner says that its memory is. */
    static final long ADDRESS = 0x7000_0000_0000L;

    /** Of what {@link #readRow} reads. */
    static final long ROW_BYTES = 4096;

    private static final Limits LIMITS =
            new Limits(
                    Duration.ofSeconds(20), Duration.ofSeconds(20), 16, 64, Duration.ofMinutes(1));
    private static final int FIXED = MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW;

    @TempDir private static Path kernels;

    private final String socketName = "dormouse-test-" + Token.random();
    private final LocalMetadata metadata =
            new LocalMetadata(
                    HostIdentity.ofThisProcess(),
                    Token.random(),
                    socketName,
                    "hostile",
                    List.of(Token.random()));

    /** What lengths of pieces are multiples of. */
    long granule;

    /** Of the owner. */
    int listener;

    private CountDownLatch last = new CountDownLatch(0);
    private CudaContext context;
    private UUID device;
    private DeviceNode reader;
    private Registration registration;

    /** The reader's own memory. */
    long ownAddress;

    private Left before;
    private long misusesBefore;

    /** What a peer could have left behind. */
    private record Left(ProcessCounts process, int objects) {}

    @BeforeEach
    void open() {
        context = DeviceNode.context();
        misusesBefore = CudaDrivers.misuses();
        granule = PhysicalMemory.granularityBytes(context);
        device = context.device().uuid();
        listener = UnixSocket.listen(socketName, 8);
        reader = new DeviceNode(SegmentAccess.READ, LIMITS, kernels);
        ownAddress = reader.allocate(ROW_BYTES);
        registration =
                reader.transport()
                        .register(
                                List.of(
                                        new MemoryRange(
                                                ownAddress, ROW_BYTES, MemoryKind.VRAM, 0)));
        before = left();
    }

    @AfterEach
    void close() {
        context.close();
        Libc.close(listener);
        if (reader != null) { // else this machine cannot have one
            registration.close();
            reader.close();
        }
        assertThat(CudaDrivers.misuses() - misusesBefore)
                .as("native calls with what a peer made up")
                .isZero();
    }

    /** What is there now is not what a peer leaves behind. */
    void count() {
        before = left();
    }

    private Left left() {
        return new Left(ProcessCounts.now(), reader.liveObjects());
    }

    /** Waits for the end of the owner, and of everything that came from it. */
    void awaitNothingLeft() {
        Await.until("the owner's end", () -> last.getCount() == 0);
        Await.until(
                "nothing is left",
                Duration.ofSeconds(30),
                () -> left().equals(before),
                () -> left() + ", and it was " + before);
    }

    /** Loads from an owner that answers as told, and goes on as told. */
    RemotePeer load(Consumer<RawPeer> answer) {
        last = RawPeer.answerNext(listener, answer);
        return reader.transport().load(TransportMetadata.ofSameHost(metadata.encode()));
    }

    /** An answer from the right owner, of the reader's own device. */
    RawGrant grant() {
        return new RawGrant(metadata, device);
    }

    /** A piece that is one. */
    int piece(long lengthBytes) {
        try (PhysicalMemory memory = PhysicalMemory.allocate(context, lengthBytes)) {
            return memory.export();
        }
    }

    /** A file that a reader of host memory would map. */
    int file() {
        int file = Libc.createMemoryFile("hostile", Libc.MFD_ALLOW_SEALING);
        Libc.allocate(file, 0, 0, granule);
        MemoryFile.seal(file, FIXED);
        return file;
    }

    /** Reads a row of the peer's, if the transport takes it for one. */
    boolean readRow(RemotePeer peer, long address) {
        BlockList remote;
        try {
            remote = reader.transport().prepareRemote(peer, List.of(row(address)));
        } catch (TransportException e) {
            return false;
        }
        BlockList local = reader.transport().prepareLocal(List.of(row(ownAddress)));
        try {
            Transfer transfer =
                    reader.transport()
                            .read(local, new int[] {0}, remote, new int[] {0}, new byte[1]);
            Await.until("its end", () -> !(transfer.poll() instanceof TransferState.InProgress));
            assertThat(transfer.release()).isTrue();
            return true;
        } catch (TransportException e) { // its owner has ended meanwhile
            return false;
        } finally {
            local.close();
            remote.close();
        }
    }

    /** A device's part that is not the reader's. */
    DeviceCopier copier() {
        return new DeviceCopier(DeviceNode.device(context, kernels));
    }

    static BlockRow row(long address) {
        return new BlockRow(address, ROW_BYTES, ROW_BYTES, 1, MemoryKind.VRAM, 0);
    }
}
