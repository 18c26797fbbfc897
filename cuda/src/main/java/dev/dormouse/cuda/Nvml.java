package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;

/**
 * What the driver tells of devices without a context on them: NVML, {@code libnvidia-ml.so.1}, from
 * the driver's folder as for {@link CudaDriver}. Safe for all threads.
 */
public final class Nvml implements AutoCloseable {
    private static final long NOT_AVAILABLE = -1;

    /** A process that starts between two calls needs one row more. */
    private static final int SPARE_ROWS = 8;

    private static final int ATTEMPTS = 4;

    private boolean open = true;

    private Nvml() {}

    /**
     * Loads the library and connects to the driver.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when there is none
     * @throws CudaException when the driver does not answer
     */
    public static Nvml load() {
        NvmlApi.verify();
        NvmlApi.call("nvmlInit", () -> (int) NvmlApi.INIT.invokeExact(), () -> "");
        return new Nvml();
    }

    /** The memory of a device, by its {@link CudaDevice#uuid}. */
    public synchronized NvmlMemory memory(UUID device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = handle(arena, device);
            MemorySegment memory = arena.allocate(NvmlApi.MEMORY);
            memory.set(JAVA_INT, 0, NvmlApi.MEMORY_VERSION);
            NvmlApi.call(
                    "nvmlDeviceGetMemoryInfo_v2",
                    () -> (int) NvmlApi.MEMORY_INFO.invokeExact(handle, memory),
                    device::toString);
            return new NvmlMemory(
                    number(memory, "total"),
                    number(memory, "reserved"),
                    number(memory, "free"),
                    number(memory, "used"));
        }
    }

    /**
     * The processes with a context on a device.
     *
     * @return empty where the driver does not tell, as in some containers and virtual machines
     */
    public synchronized Optional<List<NvmlProcess>> processes(UUID device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = handle(arena, device);
            MemorySegment count = arena.allocate(JAVA_INT);
            int result = processes(handle, count, MemorySegment.NULL);
            MemorySegment rows = MemorySegment.NULL;
            for (int i = 0; i < ATTEMPTS && result == NvmlApi.ERROR_INSUFFICIENT_SIZE; i++) {
                int capacity = count.get(JAVA_INT, 0) + SPARE_ROWS;
                count.set(JAVA_INT, 0, capacity);
                rows = arena.allocate(NvmlApi.PROCESS, capacity);
                result = processes(handle, count, rows);
            }
            if (result == NvmlApi.ERROR_NOT_SUPPORTED || result == NvmlApi.ERROR_NO_PERMISSION) {
                return Optional.empty();
            }
            if (result != NvmlApi.SUCCESS) {
                throw NvmlApi.failure(
                        "nvmlDeviceGetComputeRunningProcesses", result, device.toString());
            }
            return Optional.of(read(rows, count.get(JAVA_INT, 0)));
        }
    }

    /**
     * How many NVLinks of a device are up, 18 on an H200 in an HGX board, 0 where there are none.
     */
    public synchronized int activeNvLinks(UUID device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = handle(arena, device);
            MemorySegment active = arena.allocate(JAVA_INT);
            int links = 0;
            for (int link = 0; link < NvmlApi.MAX_LINKS; link++) {
                int number = link;
                NativeCall query =
                        () -> (int) NvmlApi.NVLINK_STATE.invokeExact(handle, number, active);
                int result = query.status();
                if (result == NvmlApi.SUCCESS) {
                    links += active.get(JAVA_INT, 0) == NvmlApi.FEATURE_ENABLED ? 1 : 0;
                } else if (result != NvmlApi.ERROR_NOT_SUPPORTED
                        && result != NvmlApi.ERROR_INVALID_ARGUMENT) {
                    throw NvmlApi.failure(
                            "nvmlDeviceGetNvLinkState", result, device + " link=" + link);
                }
            }
            return links;
        }
    }

    /** Ends the connection. Closing twice is fine. */
    @Override
    public synchronized void close() {
        if (open) {
            open = false;
            NvmlApi.call("nvmlShutdown", () -> (int) NvmlApi.SHUTDOWN.invokeExact(), () -> "");
        }
    }

    private MemorySegment handle(Arena arena, UUID device) {
        if (!open) {
            throw new IllegalStateException("query " + device + " refused: NVML is closed");
        }
        MemorySegment name = arena.allocateFrom("GPU-" + device);
        MemorySegment handle = arena.allocate(ADDRESS);
        NvmlApi.call(
                "nvmlDeviceGetHandleByUUID",
                () -> (int) NvmlApi.DEVICE_BY_UUID.invokeExact(name, handle),
                device::toString);
        return handle.get(ADDRESS, 0);
    }

    private static int processes(MemorySegment handle, MemorySegment count, MemorySegment rows) {
        NativeCall query = () -> (int) NvmlApi.PROCESSES.invokeExact(handle, count, rows);
        return query.status();
    }

    private static List<NvmlProcess> read(MemorySegment rows, int count) {
        List<NvmlProcess> processes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            MemorySegment row =
                    rows.asSlice(i * NvmlApi.PROCESS.byteSize(), NvmlApi.PROCESS.byteSize());
            long used =
                    row.get(
                            JAVA_LONG,
                            NvmlApi.PROCESS.byteOffset(PathElement.groupElement("usedGpuMemory")));
            processes.add(
                    new NvmlProcess(
                            Integer.toUnsignedLong(row.get(JAVA_INT, 0)),
                            used == NOT_AVAILABLE ? OptionalLong.empty() : OptionalLong.of(used)));
        }
        return List.copyOf(processes);
    }

    private static long number(MemorySegment memory, String field) {
        return memory.get(JAVA_LONG, NvmlApi.MEMORY.byteOffset(PathElement.groupElement(field)));
    }
}
