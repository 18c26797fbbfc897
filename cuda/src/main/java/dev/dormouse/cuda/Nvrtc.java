package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/**
 * NVIDIA's run-time compiler for CUDA C++, {@code libnvrtc.so.13} or {@code .12}: from the folder
 * that the system property {@code dormouse.nvrtc.dir} or the environment variable {@code
 * DORMOUSE_NVRTC_DIR} names, else from the search path, else from {@code /usr/local/cuda/lib64}. It
 * needs no GPU. Safe for all threads.
 */
public final class Nvrtc {
    /** The compiler recurses deeply; a Java thread's usual stack of 1 MiB is not made for it. */
    private static final long STACK_BYTES = 32L << 20;

    private final String version;

    private Nvrtc(String version) {
        this.version = version;
    }

    /**
     * Loads the library; again is cheap.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when there is none
     */
    public static Nvrtc load() {
        NvrtcApi.verify();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment major = arena.allocate(JAVA_INT);
            MemorySegment minor = arena.allocate(JAVA_INT);
            NvrtcApi.call(
                    "nvrtcVersion",
                    () -> (int) NvrtcApi.VERSION.invokeExact(major, minor),
                    () -> "");
            return new Nvrtc(major.get(JAVA_INT, 0) + "." + minor.get(JAVA_INT, 0));
        }
    }

    /** The CUDA version it belongs to, as {@code 12.9}. */
    public String version() {
        return version;
    }

    /** The generations it compiles for, as 90 for 9.0, ascending. */
    public List<Integer> supportedArchitectures() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(JAVA_INT);
            NvrtcApi.call(
                    "nvrtcGetNumSupportedArchs",
                    () -> (int) NvrtcApi.GET_NUM_SUPPORTED_ARCHS.invokeExact(count),
                    () -> "");
            MemorySegment architectures = arena.allocate(JAVA_INT, count.get(JAVA_INT, 0));
            NvrtcApi.call(
                    "nvrtcGetSupportedArchs",
                    () -> (int) NvrtcApi.GET_SUPPORTED_ARCHS.invokeExact(architectures),
                    () -> "");
            List<Integer> sorted = new ArrayList<>();
            for (int architecture : architectures.toArray(JAVA_INT)) {
                sorted.add(architecture);
            }
            sorted.sort(null);
            return List.copyOf(sorted);
        }
    }

    /**
     * Compiles, for some tenths of a second or more.
     *
     * @param options as {@code -DUNROLL=8}; the target comes by itself
     * @return a cubin or PTX, for {@link CudaModule#load}
     * @throws CudaException when the source or an option is wrong; with the compiler's log
     */
    public byte[] compile(KernelSource source, KernelTarget target, List<String> options) {
        FutureTask<byte[]> task = new FutureTask<>(() -> compileHere(source, target, options));
        Thread thread = new Thread(null, task, "dormouse-nvrtc", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        return result(task);
    }

    private static byte[] result(FutureTask<byte[]> task) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return task.get();
                } catch (InterruptedException e) {
                    interrupted = true; // a compilation cannot be stopped
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof CudaException failure) {
                        throw failure;
                    }
                    throw new IllegalStateException("compilation failed", e.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private byte[] compileHere(KernelSource source, KernelTarget target, List<String> options) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pointer = arena.allocate(ADDRESS);
            MemorySegment text = arena.allocateFrom(source.text());
            MemorySegment name = arena.allocateFrom(source.name());
            NvrtcApi.call(
                    "nvrtcCreateProgram",
                    () ->
                            (int)
                                    NvrtcApi.CREATE_PROGRAM.invokeExact(
                                            pointer,
                                            text,
                                            name,
                                            0,
                                            MemorySegment.NULL,
                                            MemorySegment.NULL),
                    () -> "source=" + source.name());
            MemorySegment program = pointer.get(ADDRESS, 0);
            try {
                compileProgram(arena, program, source, target, options);
                return target.isPtx()
                        ? bytes(arena, "PTX", NvrtcApi.GET_PTX_SIZE, NvrtcApi.GET_PTX, program)
                        : bytes(
                                arena,
                                "CUBIN",
                                NvrtcApi.GET_CUBIN_SIZE,
                                NvrtcApi.GET_CUBIN,
                                program);
            } finally {
                NvrtcApi.call(
                        "nvrtcDestroyProgram",
                        () -> (int) NvrtcApi.DESTROY_PROGRAM.invokeExact(pointer),
                        () -> "source=" + source.name());
            }
        }
    }

    private void compileProgram(
            Arena arena,
            MemorySegment program,
            KernelSource source,
            KernelTarget target,
            List<String> options) {
        List<String> all = new ArrayList<>(options);
        all.add("--gpu-architecture=" + target.architecture());
        MemorySegment array = arena.allocate(ADDRESS, all.size());
        for (int i = 0; i < all.size(); i++) {
            array.setAtIndex(ADDRESS, i, arena.allocateFrom(all.get(i)));
        }
        NvrtcApi.call(
                "nvrtcCompileProgram",
                () -> (int) NvrtcApi.COMPILE_PROGRAM.invokeExact(program, all.size(), array),
                () ->
                        "source=%s options=%s NVRTC=%s log:\n%s\n"
                                .formatted(source.name(), all, version, log(arena, program)));
    }

    private static String log(Arena arena, MemorySegment program) {
        byte[] log = bytes(arena, "ProgramLog", NvrtcApi.GET_LOG_SIZE, NvrtcApi.GET_LOG, program);
        return MemorySegment.ofArray(log).getString(0).strip();
    }

    private static byte[] bytes(
            Arena arena,
            String what,
            MethodHandle sizeFunction,
            MethodHandle function,
            MemorySegment program) {
        MemorySegment size = arena.allocate(JAVA_LONG);
        NvrtcApi.call(
                "nvrtcGet" + what + "Size",
                () -> (int) sizeFunction.invokeExact(program, size),
                () -> "");
        MemorySegment bytes = arena.allocate(Math.max(1, size.get(JAVA_LONG, 0)));
        NvrtcApi.call(
                "nvrtcGet" + what, () -> (int) function.invokeExact(program, bytes), () -> "");
        return bytes.toArray(JAVA_BYTE);
    }
}
