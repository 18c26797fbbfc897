package dev.dormouse.transport.local;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.KernelCache;
import dev.dormouse.cuda.Nvrtc;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.memory.DeviceExport;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.transport.MemoryRange;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * An agent whose memory is a device's, in pieces of several lengths: what is allocated first lies
 * across the border of two.
 */
final class DeviceNode implements ContractNode {
    static final MemoryTag TAG = MemoryTag.KV_CACHE;

    private static final long MIB = 1L << 20;
    private static final long PIECE_BYTES = 6 * MIB;
    private static final long LENGTH_BYTES = 16 * MIB;

    /** So that a block of the contract's has a part on either side. */
    private static final long BEFORE_BORDER_BYTES = 3 * 256 + 96;

    private static final long ALIGNMENT_BYTES = 4096;

    private final CudaContext context;
    private final DeviceMemory memory;
    private final CudaStream stream;
    private final LocalTransport transport;
    private long next = PIECE_BYTES - BEFORE_BORDER_BYTES;
    private boolean open = true;

    DeviceNode(SegmentAccess access, Limits limits, Path kernels) {
        context = context();
        memory =
                DeviceMemory.reserve(
                        context, Map.of(TAG, LENGTH_BYTES), PIECE_BYTES, System::nanoTime);
        memory.wake(Set.of(TAG));
        stream = CudaStream.create(context);
        transport =
                LocalTransport.open(
                        LocalTransportOptions.of(range -> backing(context, memory, range))
                                .withAccess(access)
                                .withDevice(device(context, kernels)),
                        limits);
    }

    /** The first device of the driver that there is; see {@link CudaDrivers#requireAny}. */
    static CudaContext context() {
        CudaDrivers.requireAny();
        return CudaContext.retain(CudaDriver.load().device(0));
    }

    static LocalDevice device(CudaContext context, Path kernels) {
        try {
            return new LocalDevice(context, new KernelCache(kernels, Nvrtc.load()));
        } catch (NativeLibraryException e) {
            if ("1".equals(System.getenv("DORMOUSE_REQUIRE_NATIVE"))) {
                Assertions.fail(e);
            }
            return Assumptions.abort(e.toString());
        }
    }

    /** What a process with device memory tells its transport. */
    static Backing backing(CudaContext context, DeviceMemory memory, MemoryRange range) {
        if (range.address() < memory.address(TAG)) {
            throw new IllegalArgumentException("not the device's memory: " + range);
        }
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

    /** How much of the device this node holds, mappings of peers' memory among it. */
    int liveObjects() {
        return context.liveObjects();
    }

    DeviceMemory memory() {
        return memory;
    }

    @Override
    public LocalTransport transport() {
        return transport;
    }

    @Override
    public long allocate(long lengthBytes) {
        long address = memory.address(TAG) + next;
        next += Math.ceilDiv(lengthBytes, ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
        return address;
    }

    @Override
    public void write(long address, byte[] bytes) {
        try (PinnedMemory host = PinnedMemory.allocate(context, bytes.length)) {
            MemorySegment.copy(bytes, 0, host.segment(), JAVA_BYTE, 0, bytes.length);
            stream.copyToDevice(host, 0, new DeviceSpan(address, bytes.length));
            stream.synchronize();
        }
    }

    @Override
    public byte[] read(long address, int lengthBytes) {
        try (PinnedMemory host = PinnedMemory.allocate(context, lengthBytes)) {
            stream.copyToHost(new DeviceSpan(address, lengthBytes), host, 0);
            stream.synchronize();
            return host.segment().toArray(JAVA_BYTE);
        }
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            transport.close();
            stream.close();
            memory.close();
            int left = context.liveObjects();
            if (left > 0) {
                throw new AssertionError(left + " objects of the device are left");
            }
            context.close();
        }
    }
}
