package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.SymbolBinder;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;

/**
 * The functions of NVRTC that this module uses. Prototypes are those of {@code nvrtc.h} of PyPI's
 * {@code nvidia-cuda-nvrtc-cu12} 12.9.86; they are the same in 13. All but one return {@code
 * nvrtcResult}; {@code nvrtcProgram} is a pointer.
 */
final class NvrtcApi {
    static final int SUCCESS = 0;
    static final int ERROR_COMPILATION = 6;

    private static final long MAX_TEXT_BYTES = 4096;

    private static final SymbolBinder BINDER =
            new NativeLibrary(
                            "NVRTC",
                            List.of("libnvrtc.so.13", "libnvrtc.so.12"),
                            "dormouse.nvrtc.dir",
                            "DORMOUSE_NVRTC_DIR",
                            List.of(Path.of("/usr/local/cuda/lib64")),
                            "install CUDA's toolkit, or PyPI's nvidia-cuda-nvrtc-cu12 and name its"
                                    + " lib folder in DORMOUSE_NVRTC_DIR")
                    .open();

    // nvrtcVersion(int *major, int *minor)
    static final MethodHandle VERSION = bind("nvrtcVersion", ADDRESS, ADDRESS);
    static final MethodHandle GET_NUM_SUPPORTED_ARCHS = bind("nvrtcGetNumSupportedArchs", ADDRESS);
    static final MethodHandle GET_SUPPORTED_ARCHS = bind("nvrtcGetSupportedArchs", ADDRESS);
    // nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name, int numHeaders,
    //                    const char * const *headers, const char * const *includeNames)
    static final MethodHandle CREATE_PROGRAM =
            bind("nvrtcCreateProgram", ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
    static final MethodHandle DESTROY_PROGRAM = bind("nvrtcDestroyProgram", ADDRESS);
    // nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char * const *options)
    static final MethodHandle COMPILE_PROGRAM =
            bind("nvrtcCompileProgram", ADDRESS, JAVA_INT, ADDRESS);
    // nvrtcGet...Size(nvrtcProgram prog, size_t *sizeRet), nvrtcGet...(nvrtcProgram prog, char *)
    static final MethodHandle GET_LOG_SIZE = bind("nvrtcGetProgramLogSize", ADDRESS, ADDRESS);
    static final MethodHandle GET_LOG = bind("nvrtcGetProgramLog", ADDRESS, ADDRESS);
    static final MethodHandle GET_CUBIN_SIZE = bind("nvrtcGetCUBINSize", ADDRESS, ADDRESS);
    static final MethodHandle GET_CUBIN = bind("nvrtcGetCUBIN", ADDRESS, ADDRESS);
    static final MethodHandle GET_PTX_SIZE = bind("nvrtcGetPTXSize", ADDRESS, ADDRESS);
    static final MethodHandle GET_PTX = bind("nvrtcGetPTX", ADDRESS, ADDRESS);

    private static final MethodHandle GET_ERROR_STRING =
            BINDER.function("nvrtcGetErrorString", ADDRESS, JAVA_INT);

    private NvrtcApi() {}

    /**
     * Passes only when NVRTC is there and has every function.
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
        String remedy =
                result == ERROR_COMPILATION
                        ? "mend the source or the options"
                        : "see NVIDIA's NVRTC reference";
        return new CudaException(name, values, result, errorName(result), "NVRTC", remedy);
    }

    private static String errorName(int result) {
        try {
            MemorySegment text = (MemorySegment) GET_ERROR_STRING.invokeExact(result);
            return text.reinterpret(MAX_TEXT_BYTES).getString(0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static MethodHandle bind(String name, MemoryLayout... parameters) {
        return BINDER.function(name, JAVA_INT, parameters);
    }
}
