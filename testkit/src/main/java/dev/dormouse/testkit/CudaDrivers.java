package dev.dormouse.testkit;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.dormouse.foreign.Downcall;
import dev.dormouse.foreign.NativeLibrary;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.foreign.SymbolBinder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * The CUDA driver that tests run on: the machine's, or a {@link StandInDriver} where there is none.
 * Tests ask here before they load a driver.
 */
public final class CudaDrivers {
    private static final @Nullable String ABSENCE = absence();
    private static final @Nullable StandInDriver STAND_IN = ABSENCE == null ? null : install();

    private CudaDrivers() {}

    /**
     * Passes where there is a GPU; else the test is skipped, or fails if DORMOUSE_REQUIRE_CUDA is
     * 1.
     */
    public static void requireGpu() {
        if (ABSENCE != null) {
            skip("no GPU: " + ABSENCE);
        }
    }

    /** Passes where there is a GPU or a stand-in for its driver, which the process uses now. */
    public static void requireAny() {
        if (ABSENCE != null && STAND_IN == null) {
            skip("no GPU, and no C compiler for a stand-in: " + ABSENCE);
        }
    }

    /** The stand-in; where there is a GPU the test is skipped. */
    public static StandInDriver standIn() {
        return STAND_IN == null ? Assumptions.abort("runs on the stand-in only") : STAND_IN;
    }

    /** As {@link StandInDriver#misuses}; 0 where there is a GPU. */
    public static long misuses() {
        return STAND_IN == null ? 0 : STAND_IN.misuses();
    }

    /** What a child process needs in its environment to use the same driver. */
    public static Map<String, String> environment() {
        return STAND_IN == null
                ? Map.of()
                : Map.of("DORMOUSE_CUDA_DIR", STAND_IN.folder().toString());
    }

    private static @Nullable StandInDriver install() {
        try {
            return StandInDriver.install();
        } catch (IOException e) {
            return null;
        }
    }

    private static void skip(String reason) {
        if ("1".equals(System.getenv("DORMOUSE_REQUIRE_CUDA"))) {
            Assertions.fail(reason);
        }
        Assumptions.abort(reason);
    }

    /** Asks without the cuda module's binding, which would settle on what it finds. */
    private static @Nullable String absence() {
        SymbolBinder driver =
                new NativeLibrary(
                                "the CUDA driver",
                                "libcuda.so.1",
                                "dormouse.cuda.dir",
                                "DORMOUSE_CUDA_DIR")
                        .open();
        MethodHandle init = driver.function("cuInit", JAVA_INT, JAVA_INT);
        MethodHandle getCount = driver.function("cuDeviceGetCount", JAVA_INT, ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            driver.verify();
            int result = (int) init.invokeExact(0);
            MemorySegment count = arena.allocate(JAVA_INT);
            if (result == 0) {
                result = (int) getCount.invokeExact(count);
            }
            return count.get(JAVA_INT, 0) > 0 ? null : "no device, cuInit gives " + result;
        } catch (NativeLibraryException e) {
            return e.toString();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
