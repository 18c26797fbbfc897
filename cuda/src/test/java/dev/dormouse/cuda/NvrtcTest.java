package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NvrtcTest {
    private static final KernelSource TWICE =
            new KernelSource(
                    "twice.cu",
                    "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= FACTOR; }");

    private final Nvrtc nvrtc = NvrtcNative.required();

    @Test
    void itNamesItsVersionAndWhatItCompilesFor() {
        assertThat(nvrtc.version()).matches("1[23]\\.[0-9]+");
        assertThat(nvrtc.supportedArchitectures()).contains(75, 80, 90).isSorted();
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm_80", "sm_90"})
    void machineCodeIsAnElfFile(String architecture) {
        byte[] cubin = nvrtc.compile(TWICE, new KernelTarget(architecture), List.of("-DFACTOR=2"));

        assertThat(cubin).startsWith(0x7f, 'E', 'L', 'F');
        assertThat(new String(cubin, StandardCharsets.ISO_8859_1)).contains("twice");
    }

    @Test
    void ptxIsText() {
        byte[] ptx = nvrtc.compile(TWICE, new KernelTarget("compute_75"), List.of("-DFACTOR=2"));

        assertThat(new String(ptx, StandardCharsets.UTF_8))
                .contains(".target sm_75", ".entry twice")
                .endsWith("\0");
    }

    @Test
    void anErrorCarriesTheCompilersLog() {
        KernelTarget target = new KernelTarget("sm_90");

        assertThatThrownBy(() -> nvrtc.compile(TWICE, target, List.of("-lineinfo")))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("nvrtcCompileProgram failed: source=twice.cu")
                .hasMessageContaining("--gpu-architecture=sm_90")
                .hasMessageContaining("twice.cu(1): error: identifier \"FACTOR\" is undefined")
                .hasMessageContaining("NVRTC_ERROR_COMPILATION")
                .hasMessageEndingWith("mend the source or the options");
    }

    @Test
    void anUnknownOptionOrTargetIsAnErrorToo() {
        assertThatThrownBy(
                        () -> nvrtc.compile(TWICE, new KernelTarget("sm_90"), List.of("--no-such")))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("--no-such");
        assertThatThrownBy(() -> nvrtc.compile(TWICE, new KernelTarget("sm_999"), List.of()))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("sm_999");
        assertThatThrownBy(() -> new KernelTarget("sm_90 -I/"))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm_90", "sm_80", "compute_75"})
    void theGatherKernelCompiles(String architecture) {
        byte[] image = nvrtc.compile(NvrtcNative.GATHER, new KernelTarget(architecture), List.of());

        String names = new String(image, StandardCharsets.ISO_8859_1);
        assertThat(names)
                .contains("gather_16_512", "gather_4_512", "gather_1_512")
                .contains("gather_16_4088", "gather_4_4088", "gather_1_4088");
    }

    @Test
    void copiesAreWideAndManyAreOnTheirWay() {
        String ptx =
                new String(
                        nvrtc.compile(
                                NvrtcNative.GATHER, new KernelTarget("compute_90"), List.of()),
                        StandardCharsets.UTF_8);
        String wide = body(ptx, "gather_16_4088");

        assertThat(wide.split("ld\\.global\\.nc\\.L1::no_allocate\\.L2::256B\\.v4", -1))
                .hasSize(1 + 2 * 4);
        assertThat(wide).doesNotContain(".local");
    }

    private static String body(String ptx, String function) {
        int start = ptx.indexOf(".entry " + function);
        return ptx.substring(start, ptx.indexOf("\n}", start));
    }
}
