package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.SymbolBinder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.function.Supplier;

/**
 * The functions of the CUDA driver that this module uses, one handle each.
 *
 * <p>Prototypes are those of {@code cuda.h} of CUDA 12.9 (PyPI's {@code nvidia-cuda-runtime-cu12}
 * 12.9.79), with the versioned symbol that the header's macros choose, since a later header may
 * choose another but the driver keeps the old one. All return {@code CUresult}. {@code CUdevice} is
 * an int; {@code CUdeviceptr} and {@code CUmemGenericAllocationHandle} are 64-bit numbers; every
 * other handle is a pointer. The youngest function, {@code cuFuncGetParamInfo}, is of CUDA 12.4.
 */
final class CudaApi {
    static final int SUCCESS = 0;
    static final int ERROR_INVALID_VALUE = 1;
    static final int ERROR_NOT_READY = 600;
    static final int ERROR_PEER_ACCESS_ALREADY_ENABLED = 704;

    private static final long MAX_TEXT_BYTES = 4096;

    private static final SymbolBinder BINDER =
            new NativeLibrary(
                            "the CUDA driver",
                            List.of("libcuda.so.1"),
                            "dormouse.cuda.dir",
                            "DORMOUSE_CUDA_DIR",
                            List.of(),
                            "install NVIDIA's driver 550 or later (`nvidia-smi` shows it), or run"
                                    + " without a GPU")
                    .open();

    static final MethodHandle INIT = bind("cuInit", JAVA_INT);
    static final MethodHandle DRIVER_GET_VERSION = bind("cuDriverGetVersion", ADDRESS);
    static final MethodHandle GET_ERROR_NAME = bind("cuGetErrorName", JAVA_INT, ADDRESS);
    static final MethodHandle GET_ERROR_STRING = bind("cuGetErrorString", JAVA_INT, ADDRESS);

    static final MethodHandle DEVICE_GET_COUNT = bind("cuDeviceGetCount", ADDRESS);
    // cuDeviceGet(CUdevice *device, int ordinal)
    static final MethodHandle DEVICE_GET = bind("cuDeviceGet", ADDRESS, JAVA_INT);
    // cuDeviceGetName(char *name, int len, CUdevice dev)
    static final MethodHandle DEVICE_GET_NAME =
            bind("cuDeviceGetName", ADDRESS, JAVA_INT, JAVA_INT);
    // cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
    static final MethodHandle DEVICE_GET_UUID = bind("cuDeviceGetUuid_v2", ADDRESS, JAVA_INT);
    // cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
    static final MethodHandle DEVICE_TOTAL_MEM = bind("cuDeviceTotalMem_v2", ADDRESS, JAVA_INT);
    // cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
    static final MethodHandle DEVICE_GET_ATTRIBUTE =
            bind("cuDeviceGetAttribute", ADDRESS, JAVA_INT, JAVA_INT);
    // cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
    static final MethodHandle DEVICE_CAN_ACCESS_PEER =
            bind("cuDeviceCanAccessPeer", ADDRESS, JAVA_INT, JAVA_INT);

    // cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
    static final MethodHandle PRIMARY_CTX_RETAIN =
            bind("cuDevicePrimaryCtxRetain", ADDRESS, JAVA_INT);
    static final MethodHandle CTX_SET_CURRENT = bind("cuCtxSetCurrent", ADDRESS);
    static final MethodHandle CTX_SYNCHRONIZE = bind("cuCtxSynchronize");
    // cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
    static final MethodHandle CTX_ENABLE_PEER_ACCESS =
            bind("cuCtxEnablePeerAccess", ADDRESS, JAVA_INT);
    // cuMemGetInfo_v2(size_t *free, size_t *total)
    static final MethodHandle MEM_GET_INFO = bind("cuMemGetInfo_v2", ADDRESS, ADDRESS);

    // cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
    //                     unsigned long long flags)
    static final MethodHandle MEM_ADDRESS_RESERVE =
            bind("cuMemAddressReserve", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    // cuMemAddressFree(CUdeviceptr ptr, size_t size)
    static final MethodHandle MEM_ADDRESS_FREE = bind("cuMemAddressFree", JAVA_LONG, JAVA_LONG);
    // cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
    //                               CUmemAllocationGranularity_flags option)
    static final MethodHandle MEM_GET_ALLOCATION_GRANULARITY =
            bind("cuMemGetAllocationGranularity", ADDRESS, ADDRESS, JAVA_INT);
    // cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
    //             const CUmemAllocationProp *prop, unsigned long long flags)
    static final MethodHandle MEM_CREATE =
            bind("cuMemCreate", ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    static final MethodHandle MEM_RELEASE = bind("cuMemRelease", JAVA_LONG);
    // cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
    //          unsigned long long flags)
    static final MethodHandle MEM_MAP =
            bind("cuMemMap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    // cuMemUnmap(CUdeviceptr ptr, size_t size)
    static final MethodHandle MEM_UNMAP = bind("cuMemUnmap", JAVA_LONG, JAVA_LONG);
    // cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
    static final MethodHandle MEM_SET_ACCESS =
            bind("cuMemSetAccess", JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);
    // cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
    //                              CUmemAllocationHandleType handleType, unsigned long long flags)
    static final MethodHandle MEM_EXPORT =
            bind("cuMemExportToShareableHandle", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_LONG);
    // cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
    //                                CUmemAllocationHandleType shHandleType)
    static final MethodHandle MEM_IMPORT =
            bind("cuMemImportFromShareableHandle", ADDRESS, JAVA_LONG, JAVA_INT);

    // cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
    static final MethodHandle MEM_RETAIN_HANDLE =
            bind("cuMemRetainAllocationHandle", ADDRESS, JAVA_LONG);
    // cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
    static final MethodHandle MEM_GET_ADDRESS_RANGE =
            bind("cuMemGetAddressRange_v2", ADDRESS, ADDRESS, JAVA_LONG);

    // cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
    static final MethodHandle MEM_ALLOC = bind("cuMemAlloc_v2", ADDRESS, JAVA_LONG);
    static final MethodHandle MEM_FREE = bind("cuMemFree_v2", JAVA_LONG);
    // cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
    static final MethodHandle MEM_HOST_ALLOC = bind("cuMemHostAlloc", ADDRESS, JAVA_LONG, JAVA_INT);
    static final MethodHandle MEM_FREE_HOST = bind("cuMemFreeHost", ADDRESS);

    // cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t ByteCount, CUstream hStream)
    static final MethodHandle MEMCPY_HTOD =
            bind("cuMemcpyHtoDAsync_v2", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS);
    // cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
    static final MethodHandle MEMCPY_DTOH =
            bind("cuMemcpyDtoHAsync_v2", ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS);
    // cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
    static final MethodHandle MEMCPY_DTOD =
            bind("cuMemcpyDtoDAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS);
    // cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
    //                   CUcontext srcContext, size_t ByteCount, CUstream hStream)
    static final MethodHandle MEMCPY_PEER =
            bind("cuMemcpyPeerAsync", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS);
    // cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
    static final MethodHandle MEMSET_D8 =
            bind("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, ADDRESS);

    // cuStreamCreate(CUstream *phStream, unsigned int Flags)
    static final MethodHandle STREAM_CREATE = bind("cuStreamCreate", ADDRESS, JAVA_INT);
    static final MethodHandle STREAM_DESTROY = bind("cuStreamDestroy_v2", ADDRESS);
    static final MethodHandle STREAM_SYNCHRONIZE = bind("cuStreamSynchronize", ADDRESS);
    static final MethodHandle STREAM_QUERY = bind("cuStreamQuery", ADDRESS);
    // cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
    static final MethodHandle STREAM_WAIT_EVENT =
            bind("cuStreamWaitEvent", ADDRESS, ADDRESS, JAVA_INT);

    // cuEventCreate(CUevent *phEvent, unsigned int Flags)
    static final MethodHandle EVENT_CREATE = bind("cuEventCreate", ADDRESS, JAVA_INT);
    static final MethodHandle EVENT_DESTROY = bind("cuEventDestroy_v2", ADDRESS);
    // cuEventRecord(CUevent hEvent, CUstream hStream)
    static final MethodHandle EVENT_RECORD = bind("cuEventRecord", ADDRESS, ADDRESS);
    static final MethodHandle EVENT_QUERY = bind("cuEventQuery", ADDRESS);
    static final MethodHandle EVENT_SYNCHRONIZE = bind("cuEventSynchronize", ADDRESS);
    // cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
    static final MethodHandle EVENT_ELAPSED_TIME =
            bind("cuEventElapsedTime", ADDRESS, ADDRESS, ADDRESS);

    // cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
    //                    CUjit_option *options, void **optionValues)
    static final MethodHandle MODULE_LOAD_DATA =
            bind("cuModuleLoadDataEx", ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
    static final MethodHandle MODULE_UNLOAD = bind("cuModuleUnload", ADDRESS);
    // cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
    static final MethodHandle MODULE_GET_FUNCTION =
            bind("cuModuleGetFunction", ADDRESS, ADDRESS, ADDRESS);
    // cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
    static final MethodHandle FUNC_GET_ATTRIBUTE =
            bind("cuFuncGetAttribute", ADDRESS, JAVA_INT, ADDRESS);
    // cuFuncGetParamInfo(CUfunction func, size_t index, size_t *paramOffset, size_t *paramSize)
    static final MethodHandle FUNC_GET_PARAM_INFO =
            bind("cuFuncGetParamInfo", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS);
    // cuLaunchKernel(CUfunction f, unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
    //                blockDimZ, sharedMemBytes, CUstream hStream, void **kernelParams, void
    // **extra)
    static final MethodHandle LAUNCH_KERNEL =
            bind(
                    "cuLaunchKernel",
                    ADDRESS,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    JAVA_INT,
                    ADDRESS,
                    ADDRESS,
                    ADDRESS);

    private CudaApi() {}

    /**
     * Passes only when the driver is there and has every function.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when a part is missing
     */
    static void verify() {
        BINDER.verify();
    }

    /**
     * Makes a call that must succeed.
     *
     * @param values its arguments, for the message
     * @throws CudaException when it does not
     */
    static void call(String name, NativeCall call, Supplier<String> values) {
        int result = call.status();
        if (result != SUCCESS) {
            throw failure(name, result, values.get());
        }
    }

    /** For a result that was neither success nor another expected outcome. */
    static CudaException failure(String name, int result, String values) {
        String errorName = text(GET_ERROR_NAME, result, "CUresult " + result);
        return new CudaException(
                name,
                values,
                result,
                errorName,
                text(GET_ERROR_STRING, result, "no description"),
                remedy(errorName));
    }

    private static String text(MethodHandle function, int result, String otherwise) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(ADDRESS);
            if ((int) function.invokeExact(result, text) != SUCCESS) {
                return otherwise;
            }
            return text.get(ADDRESS, 0).reinterpret(MAX_TEXT_BYTES).getString(0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static String remedy(String errorName) {
        return switch (errorName) {
            case "CUDA_ERROR_OUT_OF_MEMORY" ->
                    "free memory of the device (`nvidia-smi` shows who has it) or ask for less";
            case "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_INVALID_DEVICE" ->
                    "see `nvidia-smi -L` and CUDA_VISIBLE_DEVICES";
            case "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "CUDA_ERROR_STUB_LIBRARY" ->
                    "use the libcuda.so.1 of the driver that runs, not a stub or a compat copy";
            case "CUDA_ERROR_NO_BINARY_FOR_GPU",
                    "CUDA_ERROR_INVALID_IMAGE",
                    "CUDA_ERROR_INVALID_PTX",
                    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" ->
                    "compile for this device, with an NVRTC that is not newer than the driver";
            case "CUDA_ERROR_ILLEGAL_ADDRESS",
                    "CUDA_ERROR_MISALIGNED_ADDRESS",
                    "CUDA_ERROR_LAUNCH_FAILED",
                    "CUDA_ERROR_ILLEGAL_INSTRUCTION" ->
                    "a kernel went wrong and the device's context is lost: end this process";
            default -> "see NVIDIA's CUDA Driver API reference";
        };
    }

    private static MethodHandle bind(String name, MemoryLayout... parameters) {
        return BINDER.function(name, JAVA_INT, parameters);
    }
}
