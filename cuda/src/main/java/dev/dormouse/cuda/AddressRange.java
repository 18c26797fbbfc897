package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Addresses that stay reserved while pieces of {@link PhysicalMemory} come and go under them.
 *
 * <p>A piece stays mapped until {@link #unmap} or {@link #close}, also when its {@link
 * PhysicalMemory} has been closed. Nothing may use a piece's addresses when it is unmapped: the
 * caller waits for its streams first.
 */
public final class AddressRange extends CudaObject {
    private final long address;
    private final long lengthBytes;
    private final MappedPieces pieces;

    private AddressRange(CudaContext context, long address, long lengthBytes) {
        super(context);
        this.address = address;
        this.lengthBytes = lengthBytes;
        this.pieces = new MappedPieces(lengthBytes);
    }

    /**
     * Reserves addresses and no memory.
     *
     * @param lengthBytes a multiple of {@link PhysicalMemory#granularityBytes}
     * @throws CudaException when the driver refuses
     */
    public static AddressRange reserve(CudaContext context, long lengthBytes) {
        long granularity = PhysicalMemory.granularityBytes(context);
        if (lengthBytes <= 0 || lengthBytes % granularity != 0) {
            throw new IllegalArgumentException(
                    "reserve addresses refused: lengthBytes=%d is no positive multiple of %d"
                            .formatted(lengthBytes, granularity));
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment start = arena.allocate(JAVA_LONG);
            CudaApi.call(
                    "cuMemAddressReserve",
                    () ->
                            (int)
                                    CudaApi.MEM_ADDRESS_RESERVE.invokeExact(
                                            start, lengthBytes, 0L, 0L, 0L),
                    () -> "lengthBytes=" + lengthBytes);
            return attached(new AddressRange(context, start.get(JAVA_LONG, 0), lengthBytes));
        }
    }

    /** The first byte's. */
    public long address() {
        return address;
    }

    /** How many addresses, mapped or not. */
    public long lengthBytes() {
        return lengthBytes;
    }

    /** How much is mapped now. */
    public long mappedBytes() {
        synchronized (lock) {
            return pieces.mappedBytes();
        }
    }

    /**
     * Maps the whole of a piece, for the context's device. When it fails, nothing is mapped.
     *
     * @param offsetBytes where in the range, a multiple of the granularity
     * @throws IllegalStateException when something is mapped there
     * @throws CudaException when the driver refuses
     */
    public void map(long offsetBytes, PhysicalMemory memory, MemoryAccess access) {
        map(offsetBytes, List.of(memory), access);
    }

    /**
     * Maps the whole of each piece, one behind the other from the range's start, for the context's
     * device. When it fails, nothing is mapped that was not before.
     *
     * @throws IllegalStateException when something is mapped there
     * @throws CudaException when the driver refuses
     */
    public void mapAll(List<PhysicalMemory> memories, MemoryAccess access) {
        map(0, memories, access);
    }

    /** Access is granted for all at once: 0.6 ms for 8 pieces on an H200, as for one. */
    private void map(long startBytes, List<PhysicalMemory> memories, MemoryAccess access) {
        synchronized (lock) {
            requireOpen("map device memory");
            long end = startBytes;
            try {
                for (PhysicalMemory memory : memories) {
                    mapNative(end, memory);
                    end += memory.lengthBytes();
                }
                requireOpen("map device memory");
                setAccess(startBytes, end - startBytes, context.device(), access);
            } catch (RuntimeException e) {
                Cleanup cleanup = new Cleanup();
                if (end > startBytes) {
                    long mappedBytes = end - startBytes;
                    cleanup.run(() -> unmapPart(startBytes, mappedBytes)); // else close() tries
                }
                try {
                    cleanup.rethrow();
                } catch (CudaException unmapFailure) {
                    e.addSuppressed(unmapFailure);
                }
                throw e;
            }
        }
    }

    private void mapNative(long offsetBytes, PhysicalMemory memory) {
        synchronized (memory.lock) {
            memory.requireOpen("map device memory");
            requireOpen("map device memory");
            long length = memory.lengthBytes();
            pieces.requireFree(offsetBytes, length);
            CudaApi.call(
                    "cuMemMap",
                    () ->
                            (int)
                                    CudaApi.MEM_MAP.invokeExact(
                                            address + offsetBytes, length, 0L, memory.handle(), 0L),
                    () -> describe(offsetBytes, length));
            pieces.add(offsetBytes, length);
        }
    }

    /**
     * Lets a further device use what is mapped there, or changes what a device may do.
     *
     * @throws IllegalStateException when a part is not mapped
     */
    public void allow(long offsetBytes, long partBytes, CudaDevice device, MemoryAccess access) {
        synchronized (lock) {
            requireOpen("set access");
            pieces.requireMapped(offsetBytes, partBytes);
            setAccess(offsetBytes, partBytes, device, access);
        }
    }

    /**
     * Takes away the piece that starts there; its addresses stay reserved.
     *
     * @throws IllegalArgumentException when none does
     * @throws CudaException when the driver refuses; the piece counts as mapped
     */
    public void unmap(long offsetBytes) {
        synchronized (lock) {
            requireOpen("unmap device memory");
            unmapNative(offsetBytes, pieces.lengthAt(offsetBytes));
            pieces.remove(offsetBytes);
        }
    }

    /** Takes all pieces away, also after one failed. */
    public void unmapAll() {
        synchronized (lock) {
            requireOpen("unmap device memory");
            Cleanup cleanup = new Cleanup();
            unmapAll(cleanup);
            cleanup.rethrow();
        }
    }

    /**
     * Addresses for copies and kernels, valid until the piece is unmapped.
     *
     * @throws IllegalStateException when a part is not mapped
     */
    public DeviceSpan span(long offsetBytes, long partBytes) {
        synchronized (lock) {
            requireOpen("take a span");
            pieces.requireMapped(offsetBytes, partBytes);
            return new DeviceSpan(address + offsetBytes, partBytes);
        }
    }

    @Override
    void free() {
        Cleanup cleanup = new Cleanup();
        unmapAll(cleanup);
        cleanup.run(
                () ->
                        CudaApi.call(
                                "cuMemAddressFree",
                                () ->
                                        (int)
                                                CudaApi.MEM_ADDRESS_FREE.invokeExact(
                                                        address, lengthBytes),
                                this::toString));
        cleanup.rethrow();
    }

    /** Pieces that lie side by side go in one call: half the time of one by one on an H200. */
    private void unmapAll(Cleanup cleanup) {
        for (MappedPieces.Stretch stretch : pieces.stretches()) {
            cleanup.run(() -> unmapPart(stretch.offsetBytes(), stretch.lengthBytes()));
        }
    }

    /** Takes whole pieces away. */
    private void unmapPart(long offsetBytes, long partBytes) {
        unmapNative(offsetBytes, partBytes);
        pieces.removeWithin(offsetBytes, partBytes);
    }

    private void unmapNative(long offsetBytes, long pieceBytes) {
        CudaApi.call(
                "cuMemUnmap",
                () -> (int) CudaApi.MEM_UNMAP.invokeExact(address + offsetBytes, pieceBytes),
                () -> describe(offsetBytes, pieceBytes));
    }

    private void setAccess(
            long offsetBytes, long partBytes, CudaDevice device, MemoryAccess access) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment description = MemoryLayouts.access(arena, device, access);
            CudaApi.call(
                    "cuMemSetAccess",
                    () ->
                            (int)
                                    CudaApi.MEM_SET_ACCESS.invokeExact(
                                            address + offsetBytes, partBytes, description, 1L),
                    () ->
                            "%s device=%d access=%s"
                                    .formatted(
                                            describe(offsetBytes, partBytes),
                                            device.ordinal(),
                                            access));
        }
    }

    private String describe(long offsetBytes, long partBytes) {
        return "offsetBytes=%d lengthBytes=%d of %s".formatted(offsetBytes, partBytes, this);
    }

    @Override
    public String toString() {
        return "address range [0x%x, +%d)".formatted(address, lengthBytes);
    }
}
