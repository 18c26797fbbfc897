package dev.dormouse.cuda;

import java.util.List;

/**
 * Copies many blocks of one length in one launch, within a device or from another whose memory is
 * mapped with access for this one. A copy per block would be bound by the time of a launch (64 KiB
 * blocks on an H200: 12-17 GB/s).
 */
public final class GatherKernel implements AutoCloseable {
    private static final KernelSource SOURCE =
            KernelSource.resource(GatherKernel.class, "gather.cu");
    // as in gather.cu
    private static final int WARP = 32;
    private static final int UNROLL = 4;
    private static final int THREADS = 512;

    private final CudaModule module;
    private final CudaFunction vectors;
    private final CudaFunction words;
    private final CudaFunction bytes;

    private GatherKernel(CudaModule module) {
        this.module = module;
        this.vectors = module.function("gather_16");
        this.words = module.function("gather_4");
        this.bytes = module.function("gather_1");
    }

    /**
     * Compiles the kernel for the context's device, or takes it from the cache, and loads it.
     *
     * @throws CudaException when NVRTC does not know the device, or the driver NVRTC's output
     */
    public static GatherKernel load(CudaContext context, KernelCache cache) {
        byte[] image =
                cache.image(
                        SOURCE,
                        KernelTarget.machineCode(context.device().computeCapability()),
                        List.of());
        CudaModule module = CudaModule.load(context, SOURCE.name(), image);
        try {
            return new GatherKernel(module);
        } catch (RuntimeException e) {
            try {
                module.close();
            } catch (RuntimeException closeFailure) {
                e.addSuppressed(closeFailure);
            }
            throw e;
        }
    }

    /**
     * Queues the copy of all blocks of the list. Until the stream is past it, the list cannot be
     * filled again, and sources and targets stay mapped; sources may not be written.
     *
     * @throws IllegalArgumentException when the list is empty or too long for one launch; nothing
     *     is queued
     */
    public void copy(CudaStream stream, GatherList list) {
        GatherTable table = list.table();
        if (table.size() == 0) {
            throw new IllegalArgumentException("gather refused: the list is empty");
        }
        int alignment = table.alignmentBytes();
        CudaFunction function = alignment == 16 ? vectors : alignment == 4 ? words : bytes;
        int pieceBytes = alignment * WARP * UNROLL;
        int pieces = table.pieces(pieceBytes);
        KernelArguments arguments =
                new KernelArguments()
                        .address(list.table(stream))
                        .int32(pieces)
                        .int32(table.piecesPerBlock(pieceBytes))
                        .int64(table.blockBytes());
        int blocks = Math.ceilDiv(pieces, THREADS / WARP);
        try {
            stream.launch(function, LaunchShape.of(blocks, THREADS), arguments);
        } finally {
            list.markLaunched(stream);
        }
    }

    /** Unloads the kernel; launches that are queued must be done. Closing twice is fine. */
    @Override
    public void close() {
        module.close();
    }
}
