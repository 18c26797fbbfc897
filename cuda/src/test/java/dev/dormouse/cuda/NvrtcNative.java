package dev.dormouse.cuda;

import dev.dormouse.foreign.NativeLibraryException;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/** NVRTC for tests: a test without it is skipped, or fails where natives are required. */
final class NvrtcNative {
    static final KernelSource GATHER = KernelSource.resource(GatherKernel.class, "gather.cu");

    private NvrtcNative() {}

    static Nvrtc required() {
        try {
            return Nvrtc.load();
        } catch (NativeLibraryException e) {
            if ("1".equals(System.getenv("DORMOUSE_REQUIRE_NATIVE"))) {
                Assertions.fail(e);
            }
            return Assumptions.abort(e.toString());
        }
    }
}
