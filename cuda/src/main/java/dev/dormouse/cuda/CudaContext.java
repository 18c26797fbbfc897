package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * The primary context of one device, for one user, who closes what it made in it. All libraries of
 * the process share it.
 *
 * <p>The driver has a current context per thread. Every call of this module that needs one makes
 * its own context current on the calling thread and leaves it so. Safe for all threads; to be
 * called from platform threads, since calls block.
 *
 * <p>A context that was retained stays until the process ends, as in CUDA's own runtime. Threads
 * still have it as their current one when its last user has closed it, and other libraries take
 * that for granted: UCX, of NIXL, crashed in {@code cuCtxSetFlags} on one that was released.
 */
public final class CudaContext implements AutoCloseable {
    private static final int MAX_NAMED = 8;

    /** By the device's ordinal. */
    private static final Map<Integer, MemorySegment> RETAINED = new ConcurrentHashMap<>();

    private final CudaDevice device;
    private final MemorySegment handle;
    private final Set<CudaObject> live = new LinkedHashSet<>();
    private boolean open = true;

    private CudaContext(CudaDevice device, MemorySegment handle) {
        this.device = device;
        this.handle = handle;
    }

    /**
     * Retains the device's primary context. The first in a process takes some hundred milliseconds
     * and some hundred MiB of the device.
     *
     * @throws CudaException as when the device is out of memory
     */
    public static CudaContext retain(CudaDevice device) {
        return new CudaContext(
                device, RETAINED.computeIfAbsent(device.ordinal(), CudaContext::retained));
    }

    private static MemorySegment retained(int ordinal) {
        int deviceHandle = CudaDriver.handle(ordinal);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ADDRESS);
            CudaApi.call(
                    "cuDevicePrimaryCtxRetain",
                    () -> (int) CudaApi.PRIMARY_CTX_RETAIN.invokeExact(context, deviceHandle),
                    () -> "device=" + ordinal);
            return context.get(ADDRESS, 0);
        }
    }

    /** Whose context it is. */
    public CudaDevice device() {
        return device;
    }

    /** How many objects of this context are not closed. */
    public int liveObjects() {
        synchronized (live) {
            return live.size();
        }
    }

    /** Waits until the device has done all that this context was asked for. */
    public void synchronize() {
        makeCurrent("synchronize context");
        CudaApi.call(
                "cuCtxSynchronize",
                () -> (int) CudaApi.CTX_SYNCHRONIZE.invokeExact(),
                this::toString);
    }

    /** Free and total memory of the device, by the driver. */
    public DeviceMemoryInfo memoryInfo() {
        makeCurrent("query memory");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment free = arena.allocate(JAVA_LONG);
            MemorySegment total = arena.allocate(JAVA_LONG);
            CudaApi.call(
                    "cuMemGetInfo",
                    () -> (int) CudaApi.MEM_GET_INFO.invokeExact(free, total),
                    this::toString);
            return new DeviceMemoryInfo(free.get(JAVA_LONG, 0), total.get(JAVA_LONG, 0));
        }
    }

    /**
     * Lets this context's kernels reach the peer's {@link DeviceBuffer}s, until the end of either.
     * Enabling twice is fine. Memory mapped by an {@link AddressRange} needs {@link
     * AddressRange#allow} instead.
     *
     * @throws CudaException when the devices cannot reach each other, see {@link
     *     CudaDevice#canAccess}
     */
    public void enablePeerAccess(CudaContext peer) {
        peer.requireOpen("enable peer access");
        makeCurrent("enable peer access");
        NativeCall enable = () -> (int) CudaApi.CTX_ENABLE_PEER_ACCESS.invokeExact(peer.handle, 0);
        int result = enable.status();
        if (result != CudaApi.SUCCESS && result != CudaApi.ERROR_PEER_ACCESS_ALREADY_ENABLED) {
            throw CudaApi.failure("cuCtxEnablePeerAccess", result, this + " peer=" + peer);
        }
    }

    /**
     * Ends this use of the primary context. Closing twice is fine.
     *
     * @throws IllegalStateException naming what is still open in it; nothing changed
     */
    @Override
    public void close() {
        synchronized (live) {
            if (!open) {
                return;
            }
            if (!live.isEmpty()) {
                throw new IllegalStateException(
                        "close %s refused: %d of its objects are open: %s; close them first"
                                .formatted(this, live.size(), nameLive()));
            }
            open = false;
        }
    }

    MemorySegment handle() {
        return handle;
    }

    /** Makes this the calling thread's context, which nearly all calls need. */
    void makeCurrent(String operation) {
        requireOpen(operation);
        CudaApi.call(
                "cuCtxSetCurrent",
                () -> (int) CudaApi.CTX_SET_CURRENT.invokeExact(handle),
                this::toString);
    }

    void attach(CudaObject object) {
        synchronized (live) {
            requireOpen("create " + object);
            live.add(object);
        }
    }

    void detach(CudaObject object) {
        synchronized (live) {
            live.remove(object);
        }
    }

    private void requireOpen(String operation) {
        synchronized (live) {
            if (!open) {
                throw new IllegalStateException(operation + " refused: " + this + " is closed");
            }
        }
    }

    private String nameLive() {
        return live.stream()
                .limit(MAX_NAMED)
                .map(CudaObject::toString)
                .collect(Collectors.joining(", ", "", live.size() > MAX_NAMED ? ", ..." : ""));
    }

    /** As {@code context of device 0}. */
    @Override
    public String toString() {
        return "context of device " + device.ordinal();
    }
}
