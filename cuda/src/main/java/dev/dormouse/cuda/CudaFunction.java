package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;

/** A kernel of a module, as long as that is open. Safe for all threads. */
public final class CudaFunction {
    // numbers of CUfunction_attribute
    private static final int MAX_THREADS_PER_BLOCK = 0;

    private final CudaModule module;
    private final String name;
    private final MemorySegment handle;
    private final int[] parameterBytes;
    private final int maxThreadsPerBlock;

    private CudaFunction(CudaModule module, String name, MemorySegment handle) {
        this.module = module;
        this.name = name;
        this.handle = handle;
        this.parameterBytes = parameterBytes(handle);
        this.maxThreadsPerBlock = attribute(MAX_THREADS_PER_BLOCK);
    }

    /** Called with the module's lock held. */
    static CudaFunction find(CudaModule module, MemorySegment moduleHandle, String name) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment function = arena.allocate(ADDRESS);
            MemorySegment nativeName = arena.allocateFrom(name);
            CudaApi.call(
                    "cuModuleGetFunction",
                    () ->
                            (int)
                                    CudaApi.MODULE_GET_FUNCTION.invokeExact(
                                            function, moduleHandle, nativeName),
                    () -> "name=" + name + " of " + module);
            return new CudaFunction(module, name, function.get(ADDRESS, 0));
        }
    }

    /** Where it comes from. */
    public CudaModule module() {
        return module;
    }

    MemorySegment handle() {
        return handle;
    }

    void requireLaunchable(LaunchShape shape, KernelArguments arguments) {
        if (shape.threadsPerBlock() > maxThreadsPerBlock) {
            throw new IllegalArgumentException(
                    "launch %s refused: %s: at most %d threads per block"
                            .formatted(this, shape, maxThreadsPerBlock));
        }
        int[] sizes = arguments.sizes();
        if (!Arrays.equals(sizes, parameterBytes)) {
            throw new IllegalArgumentException(
                    "launch %s refused: arguments of %s bytes, the kernel takes %s"
                            .formatted(
                                    this, Arrays.toString(sizes), Arrays.toString(parameterBytes)));
        }
    }

    private int attribute(int attribute) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(JAVA_INT);
            CudaApi.call(
                    "cuFuncGetAttribute",
                    () -> (int) CudaApi.FUNC_GET_ATTRIBUTE.invokeExact(value, attribute, handle),
                    () -> name + " attribute=" + attribute);
            return value.get(JAVA_INT, 0);
        }
    }

    /** The driver tells sizes one by one, and refuses the first index that is too large. */
    private static int[] parameterBytes(MemorySegment handle) {
        IntStream.Builder sizes = IntStream.builder();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment offset = arena.allocate(JAVA_LONG);
            MemorySegment size = arena.allocate(JAVA_LONG);
            for (long i = 0; ; i++) {
                long index = i;
                NativeCall query =
                        () ->
                                (int)
                                        CudaApi.FUNC_GET_PARAM_INFO.invokeExact(
                                                handle, index, offset, size);
                int result = query.status();
                if (result == CudaApi.ERROR_INVALID_VALUE) {
                    return sizes.build().toArray();
                }
                if (result != CudaApi.SUCCESS) {
                    throw CudaApi.failure("cuFuncGetParamInfo", result, "index=" + index);
                }
                sizes.add(Math.toIntExact(size.get(JAVA_LONG, 0)));
            }
        }
    }

    @Override
    public String toString() {
        return "kernel " + name;
    }
}
