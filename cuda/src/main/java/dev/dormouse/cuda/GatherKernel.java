package dev.dormouse.cuda;

/**
 * Copies many blocks of one length in one launch, within a device or from another whose memory is
 * mapped with access for this one. A copy per block would be bound by the time of a launch (64 KiB
 * blocks on an H200: 12-17 GB/s).
 */
public final class GatherKernel implements AutoCloseable {
    private static final KernelSource SOURCE =
            KernelSource.resource(GatherKernel.class, "gather.cu");
    private static final ComputeCapability BULK_SINCE = new ComputeCapability(9, 0);
    private static final int WARP = 32;

    private final CudaModule module;
    private final GatherVariant variant;
    private final int multiprocessors;
    private final CudaFunction vectors;
    private final CudaFunction words;
    private final CudaFunction bytes;
    private final Bulk bulk;

    /** The kernel for the copy engines, or why there is none. */
    private sealed interface Bulk {
        record Ready(CudaFunction function, int gridBlocks) implements Bulk {}

        record Absent() implements Bulk {}
    }

    private GatherKernel(CudaModule module, GatherVariant variant) {
        CudaDevice device = module.context().device();
        this.module = module;
        this.variant = variant;
        this.multiprocessors = device.multiprocessors();
        this.vectors = module.function("gather_16");
        this.words = module.function("gather_4");
        this.bytes = module.function("gather_1");
        this.bulk =
                variant.bulk() && device.computeCapability().compareTo(BULK_SINCE) >= 0
                        ? bulk(module, variant, multiprocessors)
                        : new Bulk.Absent();
    }

    /**
     * Compiles the kernel for the context's device, or takes it from the cache, and loads it.
     *
     * @throws CudaException when NVRTC does not know the device, or the driver NVRTC's output
     */
    public static GatherKernel load(CudaContext context, KernelCache cache) {
        return load(context, cache, GatherVariant.DEFAULT);
    }

    static GatherKernel load(CudaContext context, KernelCache cache, GatherVariant variant) {
        byte[] image =
                cache.image(
                        SOURCE,
                        KernelTarget.machineCode(context.device().computeCapability()),
                        variant.options());
        CudaModule module = CudaModule.load(context, SOURCE.name(), image);
        try {
            return new GatherKernel(module, variant);
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
        if (alignment == 16 && bulk instanceof Bulk.Ready ready) {
            int pieces = table.pieces(variant.chunkBytes());
            int grid = Math.min(pieces, ready.gridBlocks());
            LaunchShape shape = LaunchShape.of(grid, WARP, variant.ringBytes());
            launch(stream, list, ready.function(), shape, pieces, variant.chunkBytes());
            return;
        }
        CudaFunction function = alignment == 16 ? vectors : alignment == 4 ? words : bytes;
        int pieceBytes = alignment * WARP * variant.unroll();
        int pieces = table.pieces(pieceBytes);
        int blocks = Math.ceilDiv(pieces, variant.threads() / WARP);
        int grid =
                variant.blocksPerMultiprocessor() == 0
                        ? blocks
                        : Math.min(blocks, variant.blocksPerMultiprocessor() * multiprocessors);
        LaunchShape shape = LaunchShape.of(grid, variant.threads());
        launch(stream, list, function, shape, pieces, pieceBytes);
    }

    /** Registers per thread of the kernel for blocks of 16 bytes' multiples. */
    int registers() {
        return bulk instanceof Bulk.Ready ready
                ? ready.function().registers()
                : vectors.registers();
    }

    /** Unloads the kernel; launches that are queued must be done. Closing twice is fine. */
    @Override
    public void close() {
        module.close();
    }

    private static void launch(
            CudaStream stream,
            GatherList list,
            CudaFunction function,
            LaunchShape shape,
            int pieces,
            long pieceBytes) {
        GatherTable table = list.table();
        KernelArguments arguments =
                new KernelArguments()
                        .address(list.upload(stream))
                        .int32(pieces)
                        .int32(table.piecesPerBlock(pieceBytes))
                        .int64(table.blockBytes());
        stream.launch(function, shape, arguments);
        list.markLaunched(stream);
    }

    private static Bulk bulk(CudaModule module, GatherVariant variant, int multiprocessors) {
        CudaFunction function = module.function("gather_bulk");
        function.allowDynamicSharedBytes(variant.ringBytes());
        int perMultiprocessor = function.maxActiveBlocks(WARP, variant.ringBytes());
        return new Bulk.Ready(function, Math.max(1, perMultiprocessor) * multiprocessors);
    }
}
