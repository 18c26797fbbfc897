package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Work of a device in order. Each method but {@link #synchronize} returns when the work is queued;
 * an error of the work itself shows at a later call. Memory that the work uses must stay mapped
 * until it is done.
 */
public final class CudaStream extends CudaObject {
    /** CU_STREAM_NON_BLOCKING: does not wait for the default stream of other libraries. */
    private static final int NON_BLOCKING = 0x1;

    private final MemorySegment handle;

    private CudaStream(CudaContext context, MemorySegment handle) {
        super(context);
        this.handle = handle;
    }

    /** A new stream without work. */
    public static CudaStream create(CudaContext context) {
        context.makeCurrent("create stream");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stream = arena.allocate(ADDRESS);
            CudaApi.call(
                    "cuStreamCreate",
                    () -> (int) CudaApi.STREAM_CREATE.invokeExact(stream, NON_BLOCKING),
                    context::toString);
            return attached(new CudaStream(context, stream.get(ADDRESS, 0)));
        }
    }

    /**
     * Copies host memory to the device.
     *
     * @param offsetBytes where in {@code source}; the length is the target's
     */
    public void copyToDevice(PinnedMemory source, long offsetBytes, DeviceSpan target) {
        MemorySegment bytes = source.segment().asSlice(offsetBytes, target.lengthBytes());
        synchronized (lock) {
            synchronized (source.lock) {
                source.requireOpen("copy to device");
                requireOpen("copy to device"); // last: makes this stream's context current
                submit(
                        "cuMemcpyHtoDAsync",
                        () ->
                                (int)
                                        CudaApi.MEMCPY_HTOD.invokeExact(
                                                target.address(),
                                                bytes,
                                                target.lengthBytes(),
                                                handle),
                        target);
            }
        }
    }

    /**
     * Copies device memory to the host.
     *
     * @param offsetBytes where in {@code target}; the length is the source's
     */
    public void copyToHost(DeviceSpan source, PinnedMemory target, long offsetBytes) {
        MemorySegment bytes = target.segment().asSlice(offsetBytes, source.lengthBytes());
        synchronized (lock) {
            synchronized (target.lock) {
                target.requireOpen("copy to host");
                requireOpen("copy to host"); // last: makes this stream's context current
                submit(
                        "cuMemcpyDtoHAsync",
                        () ->
                                (int)
                                        CudaApi.MEMCPY_DTOH.invokeExact(
                                                bytes,
                                                source.address(),
                                                source.lengthBytes(),
                                                handle),
                        source);
            }
        }
    }

    /** Copies device memory that this stream's device reaches. The ranges may not overlap. */
    public void copy(DeviceSpan source, DeviceSpan target) {
        requireSameLength(source, target);
        synchronized (lock) {
            requireOpen("copy");
            submit(
                    "cuMemcpyDtoDAsync",
                    () ->
                            (int)
                                    CudaApi.MEMCPY_DTOD.invokeExact(
                                            target.address(),
                                            source.address(),
                                            source.lengthBytes(),
                                            handle),
                    target);
        }
    }

    /** Copies between the memories of two devices; neither needs access to the other. */
    public void copyBetween(
            CudaContext sourceContext,
            DeviceSpan source,
            CudaContext targetContext,
            DeviceSpan target) {
        requireSameLength(source, target);
        synchronized (lock) {
            sourceContext.makeCurrent("copy between devices");
            targetContext.makeCurrent("copy between devices");
            requireOpen("copy between devices");
            submit(
                    "cuMemcpyPeerAsync",
                    () ->
                            (int)
                                    CudaApi.MEMCPY_PEER.invokeExact(
                                            target.address(),
                                            targetContext.handle(),
                                            source.address(),
                                            sourceContext.handle(),
                                            source.lengthBytes(),
                                            handle),
                    target);
        }
    }

    /** Sets every byte. */
    public void fill(DeviceSpan target, byte value) {
        synchronized (lock) {
            requireOpen("fill");
            submit(
                    "cuMemsetD8Async",
                    () ->
                            (int)
                                    CudaApi.MEMSET_D8.invokeExact(
                                            target.address(), value, target.lengthBytes(), handle),
                    target);
        }
    }

    /**
     * Runs a kernel.
     *
     * @throws IllegalArgumentException when the arguments' number or sizes are not the kernel's, or
     *     it cannot have such blocks of threads; nothing is queued
     */
    public void launch(CudaFunction function, LaunchShape shape, KernelArguments arguments) {
        requireSameContext(function.module(), "launch");
        function.requireLaunchable(shape, arguments);
        synchronized (lock) {
            requireOpen("launch");
            synchronized (function.module().lock) {
                function.module().requireOpen("launch");
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment pointers = arguments.pointers(arena);
                    CudaApi.call(
                            "cuLaunchKernel",
                            () ->
                                    (int)
                                            CudaApi.LAUNCH_KERNEL.invokeExact(
                                                    function.handle(),
                                                    shape.gridX(),
                                                    shape.gridY(),
                                                    shape.gridZ(),
                                                    shape.blockX(),
                                                    shape.blockY(),
                                                    shape.blockZ(),
                                                    0,
                                                    handle,
                                                    pointers,
                                                    MemorySegment.NULL),
                            () -> function + " " + shape + " " + arguments);
                }
            }
        }
    }

    /** Marks the end of what is queued so far. The event's last mark is forgotten. */
    public void record(CudaEvent event) {
        requireSameContext(event, "record");
        synchronized (lock) {
            requireOpen("record");
            synchronized (event.lock) {
                event.requireOpen("record");
                CudaApi.call(
                        "cuEventRecord",
                        () -> (int) CudaApi.EVENT_RECORD.invokeExact(event.handle(), handle),
                        event::toString);
            }
        }
    }

    /** Lets what is queued from now on wait for the event, which may be another device's. */
    public void waitFor(CudaEvent event) {
        synchronized (lock) {
            synchronized (event.lock) {
                event.requireOpen("wait for event");
                requireOpen("wait for event");
                CudaApi.call(
                        "cuStreamWaitEvent",
                        () ->
                                (int)
                                        CudaApi.STREAM_WAIT_EVENT.invokeExact(
                                                handle, event.handle(), 0),
                        event::toString);
            }
        }
    }

    /** Waits until all work is done. */
    public void synchronize() {
        synchronized (lock) {
            requireOpen("synchronize stream");
            CudaApi.call(
                    "cuStreamSynchronize",
                    () -> (int) CudaApi.STREAM_SYNCHRONIZE.invokeExact(handle),
                    this::toString);
        }
    }

    /** Whether all work is done. Never waits. */
    public boolean isIdle() {
        synchronized (lock) {
            requireOpen("query stream");
            NativeCall query = () -> (int) CudaApi.STREAM_QUERY.invokeExact(handle);
            return isDone("cuStreamQuery", query.status(), this);
        }
    }

    static boolean isDone(String call, int result, CudaObject queried) {
        if (result != CudaApi.SUCCESS && result != CudaApi.ERROR_NOT_READY) {
            throw CudaApi.failure(call, result, queried.toString());
        }
        return result == CudaApi.SUCCESS;
    }

    private void submit(String call, NativeCall work, DeviceSpan span) {
        CudaApi.call(call, work, () -> span + " on " + this);
    }

    private static void requireSameLength(DeviceSpan source, DeviceSpan target) {
        if (source.lengthBytes() != target.lengthBytes()) {
            throw new IllegalArgumentException(
                    "copy refused: source "
                            + source
                            + " and target "
                            + target
                            + " differ in length");
        }
    }

    /** Queued work goes on; the driver frees the stream after it. */
    @Override
    void free() {
        CudaApi.call(
                "cuStreamDestroy",
                () -> (int) CudaApi.STREAM_DESTROY.invokeExact(handle),
                this::toString);
    }

    @Override
    public String toString() {
        return "stream 0x%x of device %d".formatted(handle.address(), context.device().ordinal());
    }
}
