package dev.dormouse.testkit;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.SymbolBinder;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * {@code standin.c}, built once: a CUDA driver without a GPU, whose calls can be made to fail. What
 * it exports can be imported by other processes that use it.
 */
public final class StandInDriver {
    /** CUDA_ERROR_OUT_OF_MEMORY. */
    public static final int OUT_OF_MEMORY = 2;

    private final Path folder;
    private final MethodHandle fail;
    private final MethodHandle late;
    private final MethodHandle live;
    private final MethodHandle used;
    private final MethodHandle misuses;

    private StandInDriver(Path folder, SymbolBinder binder) {
        this.folder = folder;
        fail = binder.procedure("standin_fail", ADDRESS, JAVA_INT, JAVA_INT);
        late = binder.procedure("standin_late", JAVA_INT);
        live = binder.function("standin_live", JAVA_LONG);
        used = binder.function("standin_used", JAVA_LONG);
        misuses = binder.function("standin_misuses", JAVA_LONG);
        binder.verify();
    }

    /**
     * Builds it and makes it the driver of this process, which must not have looked for one.
     *
     * @throws IOException when there is no C compiler
     */
    static StandInDriver install() throws IOException {
        Path folder = Files.createTempDirectory("standin");
        Path source = folder.resolve("standin.c");
        Path library = folder.resolve("libcuda.so.1");
        try (InputStream in = StandInDriver.class.getResourceAsStream("standin.c")) {
            Files.write(source, java.util.Objects.requireNonNull(in).readAllBytes());
        }
        Process compiler =
                new ProcessBuilder(
                                "cc",
                                "-O1",
                                "-w",
                                "-shared",
                                "-fPIC",
                                "-o",
                                library.toString(),
                                source.toString())
                        .inheritIO()
                        .start();
        try {
            if (compiler.waitFor() != 0) {
                throw new IOException("cc failed");
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        System.setProperty("dormouse.cuda.dir", folder.toString());
        SymbolBinder binder =
                new NativeLibrary("stand-in", "libcuda.so.1", "dormouse.cuda.dir", "NONE").open();
        StandInDriver standIn = new StandInDriver(folder, binder);
        for (Path file : new Path[] {source, library, folder}) {
            file.toFile().deleteOnExit();
        }
        return standIn;
    }

    /** The folder with {@code libcuda.so.1}, for further processes, as long as this one lives. */
    public Path folder() {
        return folder;
    }

    /**
     * Shows this and further processes a second device, or no longer. Both have one memory.
     *
     * @throws IOException if the folder cannot be written
     */
    public void pair(boolean both) throws IOException {
        Path mark = folder.resolve("pair");
        if (both) {
            Files.write(mark, new byte[0]);
        } else {
            Files.deleteIfExists(mark);
        }
    }

    /** Lets a call fail, after the next {@code after} ones of that name. */
    public void fail(String call, int after, int code) {
        try (Arena arena = Arena.ofConfined()) {
            fail.invokeExact(arena.allocateFrom(call), after, code);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Lets copies be made when somebody waits for them, not before; or at once, as at first. To be
     * called while none is queued, and used by one thread.
     */
    public void late(boolean on) {
        try {
            late.invokeExact(on ? 1 : 0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** How many native objects and mappings there are. */
    public long live() {
        try {
            return (long) live.invokeExact();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Bytes of the device's memory that are taken. */
    public long usedBytes() {
        try {
            return (long) used.invokeExact();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * How many calls had arguments that the binding must not let through, such as lengths of no
     * whole granules.
     */
    public long misuses() {
        try {
            return (long) misuses.invokeExact();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
