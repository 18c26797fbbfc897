package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The device attributes used here, with their numbers in {@code cuda.h}'s CUdevice_attribute. */
enum DeviceAttribute {
    COMPUTE_CAPABILITY_MAJOR(75),
    COMPUTE_CAPABILITY_MINOR(76),
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED(102),
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED(103),
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED(110);

    final int code;

    DeviceAttribute(int code) {
        this.code = code;
    }

    int of(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(JAVA_INT);
            CudaApi.call(
                    "cuDeviceGetAttribute",
                    () -> (int) CudaApi.DEVICE_GET_ATTRIBUTE.invokeExact(value, code, device),
                    () -> "attribute=" + this + " device=" + device);
            return value.get(JAVA_INT, 0);
        }
    }
}
