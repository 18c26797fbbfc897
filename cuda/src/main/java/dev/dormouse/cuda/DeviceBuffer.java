package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Device memory with an address, for tables and scratch space that stay. Closing waits for the
 * device, since the driver does not say whether something still uses it.
 */
public final class DeviceBuffer extends CudaObject {
    private final DeviceSpan span;

    private DeviceBuffer(CudaContext context, DeviceSpan span) {
        super(context);
        this.span = span;
    }

    /**
     * Takes memory of the context's device; its bytes start undefined.
     *
     * @param lengthBytes more than 0
     * @throws CudaException when there is too little
     */
    public static DeviceBuffer allocate(CudaContext context, long lengthBytes) {
        if (lengthBytes <= 0) {
            throw new IllegalArgumentException(
                    "allocate device buffer refused: lengthBytes=" + lengthBytes);
        }
        context.makeCurrent("allocate device buffer");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment start = arena.allocate(JAVA_LONG);
            CudaApi.call(
                    "cuMemAlloc",
                    () -> (int) CudaApi.MEM_ALLOC.invokeExact(start, lengthBytes),
                    () -> "lengthBytes=" + lengthBytes + ", " + context);
            return attached(
                    new DeviceBuffer(
                            context, new DeviceSpan(start.get(JAVA_LONG, 0), lengthBytes)));
        }
    }

    /** All of it, valid until {@link #close()}. */
    public DeviceSpan span() {
        return span;
    }

    @Override
    void free() {
        Cleanup cleanup = new Cleanup();
        cleanup.run(context::synchronize);
        cleanup.run(
                () ->
                        CudaApi.call(
                                "cuMemFree",
                                () -> (int) CudaApi.MEM_FREE.invokeExact(span.address()),
                                this::toString));
        cleanup.rethrow();
    }

    @Override
    public String toString() {
        return "device buffer " + span;
    }
}
