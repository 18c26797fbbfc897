package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.SymbolBinder;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.function.Supplier;

/**
 * The functions of NVML that this module uses. Prototypes and structs are those of {@code nvml.h}
 * of PyPI's {@code nvidia-nvml-dev-cu12} 12.9.79. All but one return {@code nvmlReturn_t}; {@code
 * nvmlDevice_t} is a pointer.
 */
final class NvmlApi {
    static final int SUCCESS = 0;
    static final int ERROR_INVALID_ARGUMENT = 2;
    static final int ERROR_NOT_SUPPORTED = 3;
    static final int ERROR_NO_PERMISSION = 4;
    static final int ERROR_INSUFFICIENT_SIZE = 7;
    static final int FEATURE_ENABLED = 1;

    /** NVML_NVLINK_MAX_LINKS. */
    static final int MAX_LINKS = 18;

    /** nvmlMemory_v2_t, line 257: 40 bytes. */
    static final StructLayout MEMORY =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("version"),
                    MemoryLayout.paddingLayout(4),
                    JAVA_LONG.withName("total"),
                    JAVA_LONG.withName("reserved"),
                    JAVA_LONG.withName("free"),
                    JAVA_LONG.withName("used"));

    /** NVML_STRUCT_VERSION(Memory, 2), line 130. */
    static final int MEMORY_VERSION = (int) MEMORY.byteSize() | 2 << 24;

    /** nvmlProcessInfo_v2_t, line 293: 24 bytes. */
    static final StructLayout PROCESS =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("pid"),
                    MemoryLayout.paddingLayout(4),
                    JAVA_LONG.withName("usedGpuMemory"),
                    JAVA_INT.withName("gpuInstanceId"),
                    JAVA_INT.withName("computeInstanceId"));

    private static final long MAX_TEXT_BYTES = 4096;

    private static final SymbolBinder BINDER =
            new NativeLibrary(
                            "NVML",
                            List.of("libnvidia-ml.so.1"),
                            "dormouse.cuda.dir",
                            "DORMOUSE_CUDA_DIR",
                            List.of(),
                            "install NVIDIA's driver 510 or later, which brings it")
                    .open();

    static final MethodHandle INIT = bind("nvmlInit_v2");
    static final MethodHandle SHUTDOWN = bind("nvmlShutdown");
    // nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
    static final MethodHandle DEVICE_BY_UUID = bind("nvmlDeviceGetHandleByUUID", ADDRESS, ADDRESS);
    // nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
    static final MethodHandle MEMORY_INFO = bind("nvmlDeviceGetMemoryInfo_v2", ADDRESS, ADDRESS);
    // nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
    //                                         nvmlProcessInfo_t *infos)
    static final MethodHandle PROCESSES =
            bind("nvmlDeviceGetComputeRunningProcesses_v3", ADDRESS, ADDRESS, ADDRESS);
    // nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive)
    static final MethodHandle NVLINK_STATE =
            bind("nvmlDeviceGetNvLinkState", ADDRESS, JAVA_INT, ADDRESS);

    private static final MethodHandle ERROR_STRING =
            BINDER.function("nvmlErrorString", ADDRESS, JAVA_INT);

    private NvmlApi() {}

    /**
     * Passes only when NVML is there and has every function.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when a part is missing
     */
    static void verify() {
        BINDER.verify();
    }

    static void call(String name, NativeCall call, Supplier<String> values) {
        int result = call.status();
        if (result != SUCCESS) {
            throw failure(name, result, values.get());
        }
    }

    static CudaException failure(String name, int result, String values) {
        return new CudaException(
                name,
                values,
                result,
                "nvmlReturn_t " + result,
                text(result),
                "see `nvidia-smi` and NVIDIA's NVML reference");
    }

    private static String text(int result) {
        try {
            MemorySegment text = (MemorySegment) ERROR_STRING.invokeExact(result);
            return text.reinterpret(MAX_TEXT_BYTES).getString(0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static MethodHandle bind(String name, MemoryLayout... parameters) {
        return BINDER.function(name, JAVA_INT, parameters);
    }
}
