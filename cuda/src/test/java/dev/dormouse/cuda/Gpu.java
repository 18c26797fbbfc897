package dev.dormouse.cuda;

import dev.dormouse.testkit.CudaDrivers;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/** The devices that tests of this module run on. */
final class Gpu {
    private Gpu() {}

    /** A real device; see {@link CudaDrivers#requireGpu}. */
    static CudaDevice required() {
        CudaDrivers.requireGpu();
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
        CudaDrivers.requireAny();
        return CudaDriver.load().device(0);
    }
}
