package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Kernels that are loaded into a context. */
public final class CudaModule extends CudaObject {
    // numbers of CUjit_option
    private static final int ERROR_LOG_BUFFER = 5;
    private static final int ERROR_LOG_BUFFER_SIZE_BYTES = 6;

    private static final int LOG_BYTES = 8192;

    /** An ELF header's; the driver reads that much before it knows what it has. */
    private static final int MIN_IMAGE_BYTES = 64;

    private final String name;
    private final MemorySegment handle;

    private CudaModule(CudaContext context, String name, MemorySegment handle) {
        super(context);
        this.name = name;
        this.handle = handle;
    }

    /**
     * Loads a cubin, or compiles PTX.
     *
     * @param name for messages
     * @param image what {@link Nvrtc#compile} made
     * @throws CudaException when it is for another device, or not well formed; with the driver's
     *     log
     */
    public static CudaModule load(CudaContext context, String name, byte[] image) {
        if (image.length < MIN_IMAGE_BYTES) {
            throw new IllegalArgumentException(
                    "load module %s refused: %d bytes are no cubin and no PTX"
                            .formatted(name, image.length));
        }
        context.makeCurrent("load module");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment module = arena.allocate(ADDRESS);
            // PTX is a string, so one zero more
            MemorySegment code = arena.allocate(image.length + 1L, Long.BYTES);
            MemorySegment.copy(image, 0, code, JAVA_BYTE, 0, image.length);
            MemorySegment log = arena.allocate(LOG_BYTES);
            MemorySegment options =
                    arena.allocateFrom(JAVA_INT, ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES);
            MemorySegment values = arena.allocate(ADDRESS, 2);
            values.setAtIndex(ADDRESS, 0, log);
            // this value stands in the pointer itself
            values.setAtIndex(ADDRESS, 1, MemorySegment.ofAddress(LOG_BYTES - 1));
            CudaApi.call(
                    "cuModuleLoadDataEx",
                    () ->
                            (int)
                                    CudaApi.MODULE_LOAD_DATA.invokeExact(
                                            module, code, 2, options, values),
                    () ->
                            "module=%s imageBytes=%d log=%s"
                                    .formatted(name, image.length, log.getString(0).strip()));
            return attached(new CudaModule(context, name, module.get(ADDRESS, 0)));
        }
    }

    /**
     * Finds a kernel.
     *
     * @param function its name as in the image: {@code extern "C"} keeps it as it is
     * @throws CudaException when there is none
     */
    public CudaFunction function(String function) {
        synchronized (lock) {
            requireOpen("find kernel");
            return CudaFunction.find(this, handle, function);
        }
    }

    @Override
    void free() {
        CudaApi.call(
                "cuModuleUnload",
                () -> (int) CudaApi.MODULE_UNLOAD.invokeExact(handle),
                this::toString);
    }

    @Override
    public String toString() {
        return "module " + name;
    }
}
