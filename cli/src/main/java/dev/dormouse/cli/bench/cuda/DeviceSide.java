package dev.dormouse.cli.bench.cuda;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cuda.CudaContext;
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
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.local.BackingPieces;
import dev.dormouse.transport.local.LocalDevice;
import dev.dormouse.transport.local.LocalTransport;
import dev.dormouse.transport.local.LocalTransportOptions;
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

/** A process's memory on the first GPU that can sleep, awake at first, and its agent. */
final class DeviceSide implements AutoCloseable {
    static final MemoryTag TAG = MemoryTag.KV_CACHE;

    /** What stays free for contexts and tables. */
    private static final long RESERVE_BYTES = 4L << 30;

    private static final int CHUNK_WORDS = 1 << 20;
    private static final int CHUNK_BYTES = CHUNK_WORDS * Long.BYTES;
    private static final long MIX = 0x9e37_79b9_7f4a_7c15L;

    private static final long REVOKE_LIMIT_NANOS = 10_000_000_000L;
    private static final long REVOKE_POLL_NANOS = 20_000;

    private final List<AutoCloseable> owned = new ArrayList<>();
    private final CudaContext context;
    private final DeviceMemory memory;
    private final CudaStream stream;
    private final PinnedMemory host;
    private final LocalTransport transport;
    private final long[] words = new long[CHUNK_WORDS];

    /**
     * Takes the memory.
     *
     * @throws FleetException if there is no driver, or no compiler for the kernel
     */
    DeviceSide(long lengthBytes) {
        context = own(context());
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
            LocalDevice device = new LocalDevice(context, new KernelCache(kernels(), nvrtc()));
            transport =
                    own(
                            LocalTransport.open(
                                    LocalTransportOptions.of(this::backing).withDevice(device)));
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** The first GPU, or a refusal that says what to do. */
    static CudaContext context() {
        try {
            return CudaContext.retain(CudaDriver.load().device(0));
        } catch (NativeLibraryException | CudaException e) {
            throw new FleetException("no CUDA driver: " + e.getMessage(), e);
        }
    }

    /** What the first GPU has free before anything is taken. */
    static long freeOnDevice() {
        try (CudaContext context = context()) {
            return context.memoryInfo().freeBytes();
        }
    }

    /** How much of what is free may be taken. */
    static long usable(long freeBytes) {
        return freeBytes - Math.min(RESERVE_BYTES, freeBytes / 4);
    }

    /** What the agent tells now, as the reader's orders carry it. */
    String metadata() {
        return HexFormat.of().formatHex(transport.metadata().sameHost());
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

    long address() {
        return memory.address(TAG);
    }

    MemoryRange range() {
        return new MemoryRange(address(), memory.lengthBytes(TAG), MemoryKind.VRAM, 0);
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

    /** The seconds that a plain copy of the first bytes to the second half takes. */
    double copySeconds(long bytes) {
        long half = memory.lengthBytes(TAG) / 2;
        long start = System.nanoTime();
        stream.copy(span(0, bytes), span(half, bytes));
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
