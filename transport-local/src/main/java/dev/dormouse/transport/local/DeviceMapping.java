package dev.dormouse.transport.local;

import dev.dormouse.cuda.AddressRange;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDevice;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.MemoryAccess;
import dev.dormouse.cuda.PhysicalMemory;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** A peer's device memory, its pieces one behind the other in one range of addresses. */
final class DeviceMapping extends PeerMapping {
    private final DeviceCopier copier;
    private final AddressRange range;
    private volatile @Nullable DeviceCopy lastCopy;

    private DeviceMapping(
            List<Place> places, boolean writable, DeviceCopier copier, AddressRange range) {
        super(places, writable);
        this.copier = copier;
        this.range = range;
    }

    /**
     * Maps what a peer gave, for this agent's device.
     *
     * @param descriptors one per piece; they stay the caller's
     * @throws TransportException if this device cannot reach that memory, or it is not what it is
     *     said to be; nothing is mapped then
     */
    static DeviceMapping map(
            DeviceCopier copier,
            SharedMemory.DevicePieces pieces,
            int[] descriptors,
            List<SharedSegment> segments) {
        try {
            requireReachable(copier.context(), pieces.device());
            AddressRange range = AddressRange.reserve(copier.context(), pieces.lengthBytes());
            try {
                List<Place> places = places(range, pieces, segments);
                mapPieces(range, pieces, descriptors);
                return new DeviceMapping(places, pieces.writable(), copier, range);
            } catch (RuntimeException e) {
                throw closedAfter(range, e);
            }
        } catch (CudaException | IllegalArgumentException e) { // a length of no whole granules
            throw new TransportException("map a peer's device memory failed: " + e.getMessage(), e);
        }
    }

    private static void requireReachable(CudaContext context, UUID uuid) {
        CudaDevice own = context.device();
        if (own.uuid().equals(uuid)) {
            return;
        }
        CudaDevice other =
                CudaDriver.load().devices().stream()
                        .filter(device -> device.uuid().equals(uuid))
                        .findFirst()
                        .orElseThrow(
                                () ->
                                        new TransportException(
                                                "map a peer's device memory failed: GPU %s is not visible to this process; see CUDA_VISIBLE_DEVICES"
                                                        .formatted(uuid)));
        if (!own.canAccess(other)) {
            throw new TransportException(
                    "map a peer's device memory failed: GPU %d cannot access GPU %d, which has it; use another transport between them"
                            .formatted(own.ordinal(), other.ordinal()));
        }
    }

    private static List<Place> places(
            AddressRange range, SharedMemory.DevicePieces pieces, List<SharedSegment> segments) {
        long[] starts = new long[pieces.count()];
        for (int i = 1; i < starts.length; i++) {
            starts[i] = starts[i - 1] + pieces.lengthsBytes().get(i - 1);
        }
        List<Place> places = new ArrayList<>();
        for (SharedSegment segment : segments) {
            long start = starts[segment.file()];
            if (segment.endBytes() > range.lengthBytes() - start) {
                throw new TransportException(
                        "a range is said to end %d bytes behind piece %d's start, and there are %d"
                                .formatted(
                                        segment.endBytes(),
                                        segment.file(),
                                        range.lengthBytes() - start));
            }
            places.add(
                    new Place(
                            segment.address(),
                            segment.lengthBytes(),
                            range.address() + start + segment.offsetBytes()));
        }
        return places;
    }

    private static void mapPieces(
            AddressRange range, SharedMemory.DevicePieces pieces, int[] descriptors) {
        List<PhysicalMemory> imported = new ArrayList<>();
        try {
            for (int i = 0; i < descriptors.length; i++) {
                long length = pieces.lengthsBytes().get(i);
                imported.add(PhysicalMemory.importFrom(range.context(), descriptors[i], length));
            }
            map(range, imported, pieces.writable() ? MemoryAccess.READ_WRITE : MemoryAccess.READ);
        } finally {
            closeAll(imported);
        }
    }

    private static void map(AddressRange range, List<PhysicalMemory> pieces, MemoryAccess access) {
        try {
            range.mapAll(pieces, access);
        } catch (CudaException e) {
            if (access == MemoryAccess.READ_WRITE || range.mappedBytes() > 0) {
                throw e;
            }
            range.mapAll(pieces, MemoryAccess.READ_WRITE); // some drivers know nothing else
        }
    }

    /**
     * The mapping keeps the memory.
     *
     * @throws TransportException that shows, if a piece is not given back, that it is left behind
     */
    private static void closeAll(List<PhysicalMemory> imported) {
        TransportException failure =
                new TransportException(
                        "map a peer's device memory failed: what was imported is kept until this process ends");
        for (PhysicalMemory piece : imported) {
            try {
                piece.close();
            } catch (CudaException e) {
                failure.addSuppressed(e);
            }
        }
        if (isLeftBehind(failure)) {
            throw failure;
        }
    }

    /** What was mapped is unmapped; if that fails, it shows in the failure. */
    private static TransportException closedAfter(AddressRange range, RuntimeException failure) {
        TransportException refused =
                failure instanceof TransportException known
                        ? known
                        : new TransportException(
                                "map a peer's device memory failed: " + failure.getMessage(),
                                failure);
        try {
            range.close();
        } catch (CudaException e) {
            refused.addSuppressed(e);
        }
        return refused;
    }

    @Override
    MemoryKind kind() {
        return MemoryKind.VRAM;
    }

    @Override
    void awaitStarted() {
        copier.await(lastCopy);
    }

    @Override
    void release() {
        range.close();
    }

    /** Tells which copy is the last one that touches this memory; in {@link #use}. */
    void started(DeviceCopy copy) {
        lastCopy = copy;
    }
}
