package dev.dormouse.memory;

import dev.dormouse.cuda.CudaContext;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Reserves the addresses of a device's tags, which share one staging ring. For one thread. */
final class CudaPageMaker implements DeviceMemory.PageMaker {
    private final CudaContext context;
    private final long pieceBytes;
    private final StagingRing.Shape shape;
    private final LongSupplier hostRoomBytes;
    private @Nullable StagingRing ring;

    /**
     * Takes nothing yet.
     *
     * @param hostRoomBytes what this process could still get of the host's memory
     */
    CudaPageMaker(
            CudaContext context,
            long pieceBytes,
            StagingRing.Shape shape,
            LongSupplier hostRoomBytes) {
        this.context = context;
        this.pieceBytes = pieceBytes;
        this.shape = shape;
        this.hostRoomBytes = hostRoomBytes;
    }

    @Override
    public DevicePages reserve(long lengthBytes) {
        return new CudaPages(context, lengthBytes, pieceBytes, this);
    }

    /**
     * What copies with the host go through: the first call makes it.
     *
     * @param contentBytes what shall be kept in host memory beside it
     * @throws MemoryException if the host has no room for both
     * @throws dev.dormouse.cuda.CudaException if it cannot be made; a later call tries again
     */
    StagingRing ringBeside(long contentBytes) {
        StagingRing made = ring;
        long needed = contentBytes + (made == null ? shape.lengthBytes() : 0);
        long room = hostRoomBytes.getAsLong();
        if (room < needed) { // Linux would rather end the process than refuse a page
            throw new MemoryException(
                    "keep %d bytes of device memory on the host refused: that takes %d bytes, the host has room for %d; free host memory or discard the content"
                            .formatted(contentBytes, needed, room));
        }
        if (made == null) {
            made = new StagingRing(context, shape);
            ring = made;
        }
        return made;
    }

    @Override
    public long stagingBytes() {
        return ring == null ? 0 : ring.lengthBytes();
    }

    @Override
    public void close() {
        StagingRing closed = ring;
        ring = null;
        if (closed != null) {
            closed.close();
        }
    }
}
