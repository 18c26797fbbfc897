package dev.dormouse.cli.bench.cuda;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDevice;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.KernelCache;
import dev.dormouse.cuda.Nvrtc;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.memory.DeviceExport;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportMetadata;
import dev.dormouse.transport.local.BackingPieces;
import dev.dormouse.transport.local.LocalDevice;
import dev.dormouse.transport.local.LocalTransport;
import dev.dormouse.transport.local.LocalTransportOptions;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A process's memory on a GPU that can sleep, awake at first, and its agents. */
final class DeviceSide implements AutoCloseable {
    static final MemoryTag TAG = MemoryTag.KV_CACHE;

    /** The transport that imports handles. */
    static final String LOCAL = "local";

    static final String NIXL = "nixl";

    /** The GPU whose memory is read. */
    static final int OWNER_DEVICE = 0;

    /** What stays free for contexts and tables. */
    private static final long RESERVE_BYTES = 4L << 30;

    private static final int CHUNK_WORDS = 1 << 20;
    private static final int CHUNK_BYTES = CHUNK_WORDS * Long.BYTES;
    private static final long HOST_CHUNK_BYTES = 1L << 30;
    private static final long MIX = 0x9e37_79b9_7f4a_7c15L;

    private static final long REVOKE_LIMIT_NANOS = 10_000_000_000L;
    private static final long REVOKE_POLL_NANOS = 20_000;

    private final List<AutoCloseable> owned = new ArrayList<>();
    private final CudaContext context;
    private final DeviceMemory memory;
    private final CudaStream stream;
    private final PinnedMemory host;
    private final LocalTransport transport;
    private @Nullable KvTransport nixl;
    private @Nullable PeerSource peerSource;
    private final long[] words = new long[CHUNK_WORDS];

    /**
     * Takes the memory.
     *
     * @throws FleetException if there is no driver, or no compiler for the kernel
     */
    DeviceSide(long lengthBytes, int device) {
        context = own(context(device));
        try {
            memory =
                    own(
                            DeviceMemory.reserve(
                                    context,
                                    Map.of(TAG, lengthBytes),
                                    DeviceMemory.advisedPieceBytes(lengthBytes),
                                    System::nanoTime));
            var _ = memory.wake(Set.of(TAG));
            stream = own(CudaStream.create(context));
            host = own(PinnedMemory.allocate(context, CHUNK_BYTES));
            LocalDevice copier = new LocalDevice(context, new KernelCache(kernels(), nvrtc()));
            transport =
                    own(
                            LocalTransport.open(
                                    LocalTransportOptions.of(this::backing).withDevice(copier)));
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** A GPU, or a refusal that says what to do. */
    static CudaContext context(int device) {
        return CudaContext.retain(devices().get(device));
    }

    /** This machine's GPUs, at least one. */
    static List<CudaDevice> devices() {
        try {
            List<CudaDevice> devices = CudaDriver.load().devices();
            if (devices.isEmpty()) {
                throw new FleetException("no CUDA device: see `nvidia-smi -L`");
            }
            return devices;
        } catch (NativeLibraryException | CudaException e) {
            throw new FleetException("no CUDA driver: " + e.getMessage(), e);
        }
    }

    /** What a GPU has free before anything is taken. */
    static long freeOn(int device) {
        try (CudaContext context = context(device)) {
            return context.memoryInfo().freeBytes();
        }
    }

    /** How much of what is free may be taken. */
    static long usable(long freeBytes) {
        return freeBytes - Math.min(RESERVE_BYTES, freeBytes / 4);
    }

    /** What an agent tells now, as the reader's orders carry it. */
    String metadata(String name) {
        TransportMetadata metadata = transport(name).metadata();
        return HexFormat.of().formatHex(name.equals(NIXL) ? metadata.agent() : metadata.sameHost());
    }

    /** What another side has told. */
    static TransportMetadata told(String name, String metadata) {
        byte[] bytes = HexFormat.of().parseHex(metadata);
        return name.equals(NIXL)
                ? TransportMetadata.ofAgent(bytes)
                : TransportMetadata.ofSameHost(bytes);
    }

    /**
     * The agent of a transport. NIXL's is started when it is first asked for.
     *
     * @throws dev.dormouse.transport.TransportException if NIXL cannot be started
     */
    KvTransport transport(String name) {
        if (name.equals(LOCAL)) {
            return transport;
        }
        KvTransport started = nixl;
        if (started == null) {
            started =
                    own(
                            NixlTransport.open(
                                    "UCX", UcxSleepDefaults.applied(Map.of(), System.getenv())));
            nixl = started;
        }
        return started;
    }

    private static Nvrtc nvrtc() {
        try {
            return Nvrtc.load();
        } catch (NativeLibraryException e) {
            throw new FleetException("no CUDA compiler: " + e.getMessage(), e);
        }
    }

    private static Path kernels() {
        return Path.of(
                        Optional.ofNullable(System.getenv("DORMOUSE_HOME"))
                                .orElse(System.getProperty("user.home") + "/.cache/dormouse"))
                .resolve("kernels");
    }

    private <T extends AutoCloseable> T own(T part) {
        owned.addFirst(part);
        return part;
    }

    private BackingPieces backing(MemoryRange range) {
        DeviceExport export = memory.export(TAG);
        return new BackingPieces(
                context.device().uuid(),
                memory.address(TAG),
                export.pieces().stream()
                        .map(
                                piece ->
                                        new BackingPieces.Piece(
                                                piece.fileDescriptor(), piece.lengthBytes()))
                        .toList());
    }

    DeviceMemory memory() {
        return memory;
    }

    LocalTransport transport() {
        return transport;
    }

    int device() {
        return context.device().ordinal();
    }

    long address() {
        return memory.address(TAG);
    }

    MemoryRange range() {
        return new MemoryRange(address(), memory.lengthBytes(TAG), MemoryKind.VRAM, device());
    }

    /** What the device could give, by the driver. */
    long freeBytes() {
        return context.memoryInfo().freeBytes();
    }

    /** Writes content that differs in each word, and between salts. */
    void fill(Blocks blocks, long salt) {
        blocks.forEachPart(
                CHUNK_BYTES,
                (offset, bytes) -> {
                    int count = bytes / Long.BYTES;
                    long start = offset / Long.BYTES + salt;
                    for (int i = 0; i < count; i++) {
                        words[i] = (start + i) * MIX;
                    }
                    MemorySegment.copy(words, 0, host.segment(), ValueLayout.JAVA_LONG, 0, count);
                    stream.copyToDevice(host, 0, span(offset, bytes));
                    stream.synchronize();
                });
    }

    /** Takes a registration back from whoever has mapped it, and waits for that. */
    static void revoke(Registration registration) {
        long start = System.nanoTime();
        List<String> holders = registration.revoke();
        while (!holders.isEmpty()) {
            if (System.nanoTime() - start > REVOKE_LIMIT_NANOS) {
                throw new FleetException("a revoke was not answered by " + holders);
            }
            LockSupport.parkNanos(REVOKE_POLL_NANOS);
            holders = registration.revoke();
        }
    }

    /** Writes what is no content. */
    void poison() {
        stream.fill(memory.span(TAG), (byte) 0xee);
        stream.synchronize();
    }

    /**
     * Compares what a read of an owner's blocks has brought.
     *
     * @param source where each block was at its owner
     * @param target where it is here
     * @return how many words are wrong
     */
    long wrongWords(Blocks source, Blocks target, long salt) {
        long[] wrong = {0};
        int blockBytes = Math.toIntExact(source.blockBytes());
        for (int block = 0; block < source.count(); block++) {
            long start = source.offset(block) / Long.BYTES + salt;
            long from = target.offset(block);
            for (int done = 0; done < blockBytes; done += CHUNK_BYTES) {
                int bytes = Math.min(CHUNK_BYTES, blockBytes - done);
                load(from + done, bytes);
                wrong[0] += wrongWords(start + done / Long.BYTES, bytes / Long.BYTES);
            }
        }
        return wrong[0];
    }

    private void load(long offset, int bytes) {
        stream.copyToHost(span(offset, bytes), host, 0);
        stream.synchronize();
        MemorySegment.copy(host.segment(), ValueLayout.JAVA_LONG, 0, words, 0, bytes / Long.BYTES);
    }

    private long wrongWords(long start, int count) {
        long wrong = 0;
        for (int i = 0; i < count; i++) {
            wrong += words[i] == (start + i) * MIX ? 0 : 1;
        }
        return wrong;
    }

    /**
     * The seconds that the plain copy takes that a read cannot beat: to the second half of this
     * memory, from its first bytes, or on another GPU than the owner's from memory of that one.
     */
    double copySeconds(long bytes) {
        DeviceSpan target = span(memory.lengthBytes(TAG) / 2, bytes);
        if (device() == OWNER_DEVICE) {
            DeviceSpan source = span(0, bytes);
            return seconds(() -> stream.copy(source, target));
        }
        PeerSource source = peerSource();
        return seconds(
                () ->
                        stream.copyBetween(
                                source.context(),
                                source.buffer().span().slice(0, bytes),
                                context,
                                target));
    }

    /** Which copy {@link #copySeconds} makes. */
    static String limit(int readerDevice) {
        return readerDevice == OWNER_DEVICE ? "cuMemcpyDtoD" : "cuMemcpyPeer";
    }

    private PeerSource peerSource() {
        PeerSource source = peerSource;
        if (source == null) {
            source = own(PeerSource.open(context, memory.lengthBytes(TAG) / 2));
            peerSource = source;
        }
        return source;
    }

    /**
     * The seconds that plain copies of as much to pinned memory and back take, in chunks. What
     * comes back goes to where it was: the content stays.
     */
    HostCopies hostCopies() {
        DeviceSpan all = memory.span(TAG);
        long chunk = Math.min(all.lengthBytes(), HOST_CHUNK_BYTES);
        DeviceSpan first = all.slice(0, chunk);
        try (PinnedMemory pinned = PinnedMemory.allocate(context, chunk)) {
            double toHost =
                    seconds(() -> chunks(chunk, part -> stream.copyToHost(part, pinned, 0)));
            stream.copyToHost(first, pinned, 0);
            stream.synchronize();
            return new HostCopies(
                    toHost,
                    seconds(
                            () ->
                                    chunks(
                                            chunk,
                                            part ->
                                                    stream.copyToDevice(
                                                            pinned,
                                                            0,
                                                            first.slice(0, part.lengthBytes())))));
        }
    }

    /** What {@link #hostCopies} took. */
    record HostCopies(double toHostSeconds, double toDeviceSeconds) {}

    private void chunks(long chunkBytes, Consumer<DeviceSpan> copy) {
        DeviceSpan all = memory.span(TAG);
        for (long offset = 0; offset < all.lengthBytes(); offset += chunkBytes) {
            copy.accept(all.slice(offset, Math.min(chunkBytes, all.lengthBytes() - offset)));
        }
    }

    private double seconds(Runnable queue) {
        long start = System.nanoTime();
        queue.run();
        stream.synchronize();
        return (System.nanoTime() - start) / 1e9;
    }

    private DeviceSpan span(long offset, long bytes) {
        return memory.span(TAG).slice(offset, bytes);
    }

    @Override
    public void close() {
        FleetException failure = new FleetException("the GPU's memory was not given back");
        for (AutoCloseable part : owned) {
            try {
                part.close();
            } catch (Exception e) {
                failure.addSuppressed(e);
            }
        }
        owned.clear();
        if (failure.getSuppressed().length > 0) {
            throw failure;
        }
    }
}
