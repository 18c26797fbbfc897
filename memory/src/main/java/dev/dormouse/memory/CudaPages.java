package dev.dormouse.memory;

import dev.dormouse.cuda.AddressRange;
import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.MemoryAccess;
import dev.dormouse.cuda.PhysicalMemory;
import java.util.ArrayList;
import java.util.List;

/** Pages of a CUDA device, in pieces of physical memory. */
final class CudaPages implements DevicePages {
    private final CudaContext context;
    private final AddressRange range;
    private final long pieceBytes;
    private final CudaPageMaker maker;
    private final List<PhysicalMemory> pieces = new ArrayList<>();

    /**
     * Reserves the addresses.
     *
     * @param lengthBytes rounded up to whole granules
     * @param pieceBytes the largest piece, rounded up to whole granules
     * @param maker has the ring for copies with the host
     */
    CudaPages(CudaContext context, long lengthBytes, long pieceBytes, CudaPageMaker maker) {
        this.context = context;
        this.maker = maker;
        long granularity = PhysicalMemory.granularityBytes(context);
        this.pieceBytes = roundUp(pieceBytes, granularity);
        this.range = AddressRange.reserve(context, roundUp(lengthBytes, granularity));
    }

    @Override
    public long address() {
        return range.address();
    }

    @Override
    public long lengthBytes() {
        return range.lengthBytes();
    }

    @Override
    public long freeBytes() {
        return context.memoryInfo().freeBytes();
    }

    @Override
    public void map() {
        try {
            for (long offset = 0; offset < lengthBytes(); offset += pieceBytes) {
                PhysicalMemory piece =
                        PhysicalMemory.allocate(
                                context, Math.min(pieceBytes, lengthBytes() - offset));
                pieces.add(piece);
            }
            range.mapAll(pieces, MemoryAccess.READ_WRITE);
        } catch (RuntimeException e) {
            try {
                unmap();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    @Override
    public void unmap() {
        context.synchronize();
        range.unmapAll();
        Cleanup cleanup = new Cleanup();
        releasePieces(cleanup);
        cleanup.rethrow();
    }

    @Override
    public boolean isWhole() {
        return range.mappedBytes() == lengthBytes();
    }

    @Override
    public HostBackup backUp() {
        StagingRing ring = maker.ringBeside(lengthBytes());
        context.synchronize();
        return KeptContent.of(ring, all());
    }

    @Override
    public void restore(HostBackup backup) {
        ((KeptContent) backup).restore(all());
    }

    @Override
    public DeviceExport export() {
        List<DeviceExport.Piece> exported = new ArrayList<>();
        try {
            for (PhysicalMemory piece : pieces) {
                exported.add(new DeviceExport.Piece(piece.export(), piece.lengthBytes()));
            }
        } catch (RuntimeException e) {
            new DeviceExport(exported).close();
            throw e;
        }
        return new DeviceExport(exported);
    }

    @Override
    public void close() {
        Cleanup cleanup = new Cleanup();
        cleanup.run(context::synchronize);
        cleanup.run(range::close);
        releasePieces(cleanup);
        cleanup.rethrow();
    }

    /** The device has their memory back once nothing maps it. */
    private void releasePieces(Cleanup cleanup) {
        pieces.forEach(piece -> cleanup.run(piece::close));
        pieces.clear();
    }

    private DeviceSpan all() {
        return range.span(0, lengthBytes());
    }

    private static long roundUp(long bytes, long unitBytes) {
        return Math.ceilDiv(bytes, unitBytes) * unitBytes;
    }
}
