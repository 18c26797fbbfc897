package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A point in a stream's work that others wait for. */
public final class CudaEvent extends CudaObject {
    /** CU_EVENT_DEFAULT: with a time stamp; waiting spins. */
    private static final int TIMED = 0x0;

    /** CU_EVENT_DISABLE_TIMING: sooner seen, by a microsecond on an H200; waiting spins. */
    private static final int UNTIMED = 0x2;

    private final MemorySegment handle;

    private CudaEvent(CudaContext context, MemorySegment handle) {
        super(context);
        this.handle = handle;
    }

    /** A new event, which counts as passed until it is recorded. */
    public static CudaEvent create(CudaContext context) {
        return create(context, UNTIMED);
    }

    /** The same with a time stamp, for {@link #millisSince}. */
    public static CudaEvent timed(CudaContext context) {
        return create(context, TIMED);
    }

    private static CudaEvent create(CudaContext context, int flags) {
        context.makeCurrent("create event");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment event = arena.allocate(ADDRESS);
            CudaApi.call(
                    "cuEventCreate",
                    () -> (int) CudaApi.EVENT_CREATE.invokeExact(event, flags),
                    context::toString);
            return attached(new CudaEvent(context, event.get(ADDRESS, 0)));
        }
    }

    /** Whether the work before it is done. Never waits. */
    public boolean hasPassed() {
        synchronized (lock) {
            requireOpen("query event");
            NativeCall query = () -> (int) CudaApi.EVENT_QUERY.invokeExact(handle);
            return CudaStream.isDone("cuEventQuery", query.status(), this);
        }
    }

    /** Waits until the work before it is done. */
    public void await() {
        synchronized (lock) {
            requireOpen("await event");
            CudaApi.call(
                    "cuEventSynchronize",
                    () -> (int) CudaApi.EVENT_SYNCHRONIZE.invokeExact(handle),
                    this::toString);
        }
    }

    /**
     * The time from another event to this one, which both have passed, with a resolution of about
     * half a microsecond. Both must be {@link #timed}.
     */
    public double millisSince(CudaEvent start) {
        synchronized (start.lock) {
            start.requireOpen("measure time");
            synchronized (lock) {
                requireOpen("measure time");
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment millis = arena.allocate(JAVA_FLOAT);
                    CudaApi.call(
                            "cuEventElapsedTime",
                            () ->
                                    (int)
                                            CudaApi.EVENT_ELAPSED_TIME.invokeExact(
                                                    millis, start.handle, handle),
                            this::toString);
                    return millis.get(JAVA_FLOAT, 0);
                }
            }
        }
    }

    /** For {@link CudaStream}, which holds this object's lock. */
    MemorySegment handle() {
        return handle;
    }

    @Override
    void free() {
        CudaApi.call(
                "cuEventDestroy",
                () -> (int) CudaApi.EVENT_DESTROY.invokeExact(handle),
                this::toString);
    }

    @Override
    public String toString() {
        return "event 0x%x".formatted(handle.address());
    }
}
