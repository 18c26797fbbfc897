package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.ByteOrder;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;

/**
 * The CUDA driver of this machine, {@code libcuda.so.1}, from the folder that the system property
 * {@code dormouse.cuda.dir} or the environment variable {@code DORMOUSE_CUDA_DIR} names, else from
 * the search path. It stays loaded for the life of the process. Safe for all threads.
 */
public final class CudaDriver {
    private static final int MAX_NAME_BYTES = 256;

    private final int version;

    private CudaDriver(int version) {
        this.version = version;
    }

    /**
     * Loads and initialises the driver; again is cheap.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when there is none, or too old a one
     * @throws CudaException when it finds no device, or does not fit the kernel module
     */
    public static CudaDriver load() {
        CudaApi.verify();
        CudaApi.call("cuInit", () -> (int) CudaApi.INIT.invokeExact(0), () -> "flags=0");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment version = arena.allocate(JAVA_INT);
            CudaApi.call(
                    "cuDriverGetVersion",
                    () -> (int) CudaApi.DRIVER_GET_VERSION.invokeExact(version),
                    () -> "");
            return new CudaDriver(version.get(JAVA_INT, 0));
        }
    }

    /** The newest CUDA that the driver knows, as 13000 for 13.0. */
    public int version() {
        return version;
    }

    /** How many devices this process may use. */
    public int deviceCount() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(JAVA_INT);
            CudaApi.call(
                    "cuDeviceGetCount",
                    () -> (int) CudaApi.DEVICE_GET_COUNT.invokeExact(count),
                    () -> "");
            return count.get(JAVA_INT, 0);
        }
    }

    /** All devices that this process may use, in the driver's order. */
    public List<CudaDevice> devices() {
        return IntStream.range(0, deviceCount()).mapToObj(this::device).toList();
    }

    /**
     * One device, with what it can do.
     *
     * @param ordinal from 0
     * @throws CudaException when there is no such device
     */
    public CudaDevice device(int ordinal) {
        int device = handle(ordinal);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(MAX_NAME_BYTES);
            CudaApi.call(
                    "cuDeviceGetName",
                    () -> (int) CudaApi.DEVICE_GET_NAME.invokeExact(name, MAX_NAME_BYTES, device),
                    () -> "ordinal=" + ordinal);
            MemorySegment uuid = arena.allocate(2L * Long.BYTES, Long.BYTES);
            query("cuDeviceGetUuid", CudaApi.DEVICE_GET_UUID, uuid, device);
            MemorySegment bytes = arena.allocate(JAVA_LONG);
            query("cuDeviceTotalMem", CudaApi.DEVICE_TOTAL_MEM, bytes, device);
            return new CudaDevice(
                    ordinal,
                    name.getString(0),
                    uuid(uuid),
                    bytes.get(JAVA_LONG, 0),
                    new ComputeCapability(
                            DeviceAttribute.COMPUTE_CAPABILITY_MAJOR.of(device),
                            DeviceAttribute.COMPUTE_CAPABILITY_MINOR.of(device)),
                    DeviceAttribute.VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.of(device) != 0,
                    DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED.of(device) != 0,
                    DeviceAttribute.GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED.of(device) != 0);
        }
    }

    /** The driver's own number of a device. */
    static int handle(int ordinal) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment device = arena.allocate(JAVA_INT);
            CudaApi.call(
                    "cuDeviceGet",
                    () -> (int) CudaApi.DEVICE_GET.invokeExact(device, ordinal),
                    () -> "ordinal=" + ordinal);
            return device.get(JAVA_INT, 0);
        }
    }

    private static void query(String call, MethodHandle function, MemorySegment out, int device) {
        CudaApi.call(call, () -> (int) function.invokeExact(out, device), () -> "device=" + device);
    }

    /** The 16 bytes in the order in which {@code nvidia-smi} prints them. */
    private static UUID uuid(MemorySegment bytes) {
        var bigEndian = JAVA_LONG.withOrder(ByteOrder.BIG_ENDIAN);
        return new UUID(bytes.get(bigEndian, 0), bytes.get(bigEndian, Long.BYTES));
    }
}
