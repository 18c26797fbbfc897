package dev.dormouse.cuda;

import java.util.List;

/**
 * Copies many blocks of one length, within a device or from another whose memory is mapped with
 * access for this one. A copy per block would be bound by the time of a launch (64 KiB blocks on an
 * H200: 12-17 GB/s), so one launch copies all. Two kinds of lists take several: those whose blocks
 * lie very far from each other, by more than 2^31 times what their distances are multiples of (8
 * TiB in steps of 4 KiB), and those of more than 256 GiB.
 */
public final class GatherKernel implements AutoCloseable {
    private static final KernelSource SOURCE =
            KernelSource.resource(GatherKernel.class, "gather.cu");
    // as in gather.cu
    private static final int WARP = 32;
    private static final int UNROLL = 4;
    private static final int THREADS = 512;

    /** Places of the list's short form; the long form has all of {@link GatherList}'s. */
    public static final int SHORT_LIST = 512;

    /** From here on the arguments of a launch may have as many bytes as the long form. */
    private static final ComputeCapability OLDEST = new ComputeCapability(7, 0);

    private final CudaModule module;
    private final Form shortForm;
    private final Form longForm;

    private GatherKernel(CudaModule module) {
        this.module = module;
        this.shortForm = new Form(module, SHORT_LIST);
        this.longForm = new Form(module, GatherList.CAPACITY);
    }

    /** The kernels for lists of at most so many blocks. */
    private record Form(
            int capacity, CudaFunction vectors, CudaFunction words, CudaFunction bytes) {
        Form(CudaModule module, int capacity) {
            this(
                    capacity,
                    module.function("gather_16_" + capacity),
                    module.function("gather_4_" + capacity),
                    module.function("gather_1_" + capacity));
        }

        CudaFunction function(int alignmentBytes) {
            return alignmentBytes == 16 ? vectors : alignmentBytes == 4 ? words : bytes;
        }
    }

    /**
     * Compiles the kernel for the context's device, or takes it from the cache, and loads it.
     *
     * @throws IllegalArgumentException when the device is older than any that the kernel can run on
     * @throws CudaException when NVRTC does not know the device, or the driver NVRTC's output
     */
    public static GatherKernel load(CudaContext context, KernelCache cache) {
        requireLongArguments(context.device());
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

    private static void requireLongArguments(CudaDevice device) {
        if (device.computeCapability().compareTo(OLDEST) < 0) {
            throw new IllegalArgumentException(
                    "load gather kernel refused: %s has compute capability %s, at least %s is needed"
                            .formatted(device.name(), device.computeCapability(), OLDEST));
        }
    }

    /**
     * Queues the copy of all blocks of the list, which can be filled again at once. Until the
     * stream is past it, sources and targets stay mapped, and sources may not be written.
     *
     * @throws IllegalArgumentException when the list is empty, or its blocks are larger than the
     *     kernel can count; nothing is queued
     * @throws CudaException when the device refuses; some of it may be queued
     */
    public void copy(CudaStream stream, GatherList list) {
        if (list.size() == 0) {
            throw new IllegalArgumentException("gather refused: the list is empty");
        }
        int most = blocksPerLaunch(list.blockBytes());
        int done = 0;
        while (done < list.size()) {
            done += launch(stream, list, done, most);
        }
    }

    /** The kernel counts pieces to 2^31, and those of a byte per thread are the most. */
    static int blocksPerLaunch(long blockBytes) {
        long pieces = pieces(blockBytes, 1);
        if (pieces > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "gather refused: blocks of %d bytes; less than 256 GiB can be copied"
                            .formatted(blockBytes));
        }
        return (int) Math.min(Integer.MAX_VALUE / pieces, GatherList.CAPACITY);
    }

    private static long pieces(long blockBytes, int alignment) {
        return Math.ceilDiv(blockBytes, (long) alignment * WARP * UNROLL);
    }

    private int launch(CudaStream stream, GatherList list, int first, int most) {
        GatherPlaces places = list.places(first, most);
        int alignment = alignmentBytes(places.addressBits() | list.blockBytes());
        int perBlock = (int) pieces(list.blockBytes(), alignment);
        int pieces = places.count() * perBlock;
        Form form = places.count() <= SHORT_LIST ? shortForm : longForm;
        KernelArguments arguments =
                new KernelArguments()
                        .struct(places.struct(form.capacity()))
                        .int32(places.shift())
                        .int32(pieces)
                        .int32(perBlock)
                        .int64(places.source())
                        .int64(places.target())
                        .int64(list.blockBytes());
        int blocks = Math.ceilDiv(pieces, THREADS / WARP);
        stream.launch(form.function(alignment), LaunchShape.of(blocks, THREADS), arguments);
        return places.count();
    }

    /** What all addresses and the length are multiples of: 16, 4 or 1. */
    static int alignmentBytes(long bits) {
        return (bits & 15) == 0 ? 16 : (bits & 3) == 0 ? 4 : 1;
    }

    /** Unloads the kernel; launches that are queued must be done. Closing twice is fine. */
    @Override
    public void close() {
        module.close();
    }
}
