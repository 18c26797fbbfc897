package dev.dormouse.cuda;

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
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * The driver that tests of this module run on: the machine's, or the {@link StandIn} where there is
 * none. Tests ask here before they touch anything else.
 */
final class Gpu {
    private static final @Nullable String ABSENCE = absence();
    private static final @Nullable StandIn STAND_IN = ABSENCE == null ? null : install();

    private Gpu() {}

    /** A real device; without one the test is skipped, or fails if DORMOUSE_REQUIRE_CUDA is 1. */
    static CudaDevice required() {
        if (ABSENCE != null) {
            return skip("no GPU: " + ABSENCE);
        }
        return CudaDriver.load().device(0);
    }

    /** Two real devices that reach each other; without them the test is skipped. */
    static List<CudaDevice> requiredPair() {
        required();
        List<CudaDevice> devices = CudaDriver.load().devices();
        Assumptions.assumeTrue(devices.size() >= 2, "only one GPU");
        Assumptions.assumeTrue(devices.get(0).canAccess(devices.get(1)), "GPUs without a link");
        return devices.subList(0, 2);
    }

    /** A device, real or not. */
    static CudaDevice any() {
        if (ABSENCE != null && STAND_IN == null) {
            return skip("no GPU, and no C compiler for a stand-in: " + ABSENCE);
        }
        return CudaDriver.load().device(0);
    }

    /** The stand-in; where there is a real device the test is skipped. */
    static StandIn standIn() {
        return STAND_IN == null ? Assumptions.abort("runs on the stand-in only") : STAND_IN;
    }

    private static @Nullable StandIn install() {
        try {
            return StandIn.install();
        } catch (IOException e) {
            return null;
        }
    }

    private static CudaDevice skip(String reason) {
        if ("1".equals(System.getenv("DORMOUSE_REQUIRE_CUDA"))) {
            Assertions.fail(reason);
        }
        return Assumptions.abort(reason);
    }

    /** Asks without the binding, which would settle on what it finds. */
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
