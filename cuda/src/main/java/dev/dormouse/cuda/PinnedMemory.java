package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Host memory that the GPU copies from and to while the CPU goes on. Closing waits for the device,
 * then takes the segment away from Java: a later access throws.
 */
public final class PinnedMemory extends CudaObject {
    /** CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts of the process. */
    private static final int PORTABLE = 0x1;

    private final Arena arena;
    private final MemorySegment segment;

    private PinnedMemory(CudaContext context, Arena arena, MemorySegment segment) {
        super(context);
        this.arena = arena;
        this.segment = segment;
    }

    /**
     * Takes host memory, aligned to pages.
     *
     * @param lengthBytes more than 0
     * @throws CudaException when there is too little
     */
    @SuppressWarnings("MustBeClosedChecker") // free() closes the arena
    public static PinnedMemory allocate(CudaContext context, long lengthBytes) {
        if (lengthBytes <= 0) {
            throw new IllegalArgumentException(
                    "allocate pinned memory refused: lengthBytes=" + lengthBytes);
        }
        context.makeCurrent("allocate pinned memory");
        try (Arena call = Arena.ofConfined()) {
            MemorySegment pointer = call.allocate(ADDRESS);
            CudaApi.call(
                    "cuMemHostAlloc",
                    () -> (int) CudaApi.MEM_HOST_ALLOC.invokeExact(pointer, lengthBytes, PORTABLE),
                    () -> "lengthBytes=" + lengthBytes);
            Arena arena = Arena.ofShared();
            MemorySegment segment = pointer.get(ADDRESS, 0).reinterpret(lengthBytes, arena, null);
            return attached(new PinnedMemory(context, arena, segment));
        }
    }

    /** All of it. The CPU may touch what no copy on its way uses. */
    public MemorySegment segment() {
        return segment;
    }

    @Override
    void free() {
        long address = segment.address();
        Cleanup cleanup = new Cleanup();
        cleanup.run(context::synchronize);
        cleanup.run(arena::close);
        cleanup.run(
                () ->
                        CudaApi.call(
                                "cuMemFreeHost",
                                () ->
                                        (int)
                                                CudaApi.MEM_FREE_HOST.invokeExact(
                                                        MemorySegment.ofAddress(address)),
                                this::toString));
        cleanup.rethrow();
    }

    @Override
    public String toString() {
        return "pinned memory of " + segment.byteSize() + " bytes";
    }
}
