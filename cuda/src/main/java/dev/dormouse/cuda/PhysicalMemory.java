package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A piece of a device's memory without an address. The device gets it back when this is closed,
 * nothing maps it any more (in any process), and every descriptor of it is closed.
 *
 * <p>Its bytes start undefined, not zero. It can be exported where the device can ({@link
 * CudaDevice#exportsFileDescriptors}) and reached by a network card where {@link
 * CudaDevice#supportsGpuDirectRdma}.
 */
public final class PhysicalMemory extends CudaObject {
    private final long handle;
    private final long lengthBytes;

    private PhysicalMemory(CudaContext context, long handle, long lengthBytes) {
        super(context);
        this.handle = handle;
        this.lengthBytes = lengthBytes;
    }

    /** What lengths and offsets of mappings must be multiples of, 2 MiB on an H200. */
    public static long granularityBytes(CudaContext context) {
        context.makeCurrent("query granularity");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment granularity = arena.allocate(JAVA_LONG);
            MemorySegment properties = MemoryLayouts.allocation(arena, context.device());
            CudaApi.call(
                    "cuMemGetAllocationGranularity",
                    () ->
                            (int)
                                    CudaApi.MEM_GET_ALLOCATION_GRANULARITY.invokeExact(
                                            granularity,
                                            properties,
                                            MemoryLayouts.GRANULARITY_MINIMUM),
                    context::toString);
            return granularity.get(JAVA_LONG, 0);
        }
    }

    /**
     * Takes memory of the context's device.
     *
     * @param lengthBytes a multiple of {@link #granularityBytes}
     * @throws CudaException when there is too little, see {@link CudaException#isOutOfMemory}
     */
    public static PhysicalMemory allocate(CudaContext context, long lengthBytes) {
        long granularity = granularityBytes(context);
        if (lengthBytes <= 0 || lengthBytes % granularity != 0) {
            throw new IllegalArgumentException(
                    "allocate device memory refused: lengthBytes=%d is no positive multiple of %d"
                            .formatted(lengthBytes, granularity));
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            MemorySegment properties = MemoryLayouts.allocation(arena, context.device());
            CudaApi.call(
                    "cuMemCreate",
                    () -> (int) CudaApi.MEM_CREATE.invokeExact(handle, lengthBytes, properties, 0L),
                    () -> "lengthBytes=%d, %s".formatted(lengthBytes, describe(context)));
            return attached(new PhysicalMemory(context, handle.get(JAVA_LONG, 0), lengthBytes));
        }
    }

    /**
     * Memory that another process, or another context of this one, exported.
     *
     * @param fileDescriptor stays the caller's, who may close it at once
     * @param lengthBytes what the exporter allocated, a multiple of {@link #granularityBytes}; CUDA
     *     does not tell. A larger number makes {@link AddressRange#map} fail
     * @throws CudaException as when the descriptor is of something else
     */
    public static PhysicalMemory importFrom(
            CudaContext context, int fileDescriptor, long lengthBytes) {
        long granularity = granularityBytes(context);
        if (fileDescriptor < 0 || lengthBytes <= 0 || lengthBytes % granularity != 0) {
            throw new IllegalArgumentException(
                    "import device memory refused: fileDescriptor=%d lengthBytes=%d, and lengths are positive multiples of %d"
                            .formatted(fileDescriptor, lengthBytes, granularity));
        }
        context.makeCurrent("import device memory");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            CudaApi.call(
                    "cuMemImportFromShareableHandle",
                    () ->
                            (int)
                                    CudaApi.MEM_IMPORT.invokeExact(
                                            handle,
                                            (long) fileDescriptor,
                                            MemoryLayouts.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                    () ->
                            "fileDescriptor=%d lengthBytes=%d %s"
                                    .formatted(fileDescriptor, lengthBytes, context));
            return attached(new PhysicalMemory(context, handle.get(JAVA_LONG, 0), lengthBytes));
        }
    }

    /**
     * A new file descriptor of the memory, for another process to import.
     *
     * @return the caller's to close, by {@link dev.dormouse.foreign.Libc#close}; as long as it is
     *     open, here or where it was sent, the device does not get the memory back
     */
    public int export() {
        synchronized (lock) {
            requireOpen("export device memory");
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment descriptor = arena.allocate(JAVA_INT);
                CudaApi.call(
                        "cuMemExportToShareableHandle",
                        () ->
                                (int)
                                        CudaApi.MEM_EXPORT.invokeExact(
                                                descriptor,
                                                handle,
                                                MemoryLayouts.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                0L),
                        this::toString);
                return descriptor.get(JAVA_INT, 0);
            }
        }
    }

    /** Its size. */
    public long lengthBytes() {
        return lengthBytes;
    }

    /** For {@link AddressRange}, which holds this object's lock. */
    long handle() {
        return handle;
    }

    @Override
    void free() {
        CudaApi.call(
                "cuMemRelease",
                () -> (int) CudaApi.MEM_RELEASE.invokeExact(handle),
                this::toString);
    }

    private static String describe(CudaContext context) {
        DeviceMemoryInfo info = context.memoryInfo();
        return "%s has free %d of %d bytes".formatted(context, info.freeBytes(), info.totalBytes());
    }

    @Override
    public String toString() {
        return "device memory of " + lengthBytes + " bytes";
    }
}
