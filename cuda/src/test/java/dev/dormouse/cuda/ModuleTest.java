package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Kernels of one's own, on a GPU. */
class ModuleTest {
    private static final KernelSource ADD =
            new KernelSource(
                    "add.cu",
                    """
                    extern "C" __global__ void add(int* x, int a, long long b, float c) {
                        __shared__ int scratch[256];
                        scratch[threadIdx.x] = a;
                        __syncthreads();
                        int i = blockIdx.x * blockDim.x + threadIdx.x;
                        x[i] = scratch[blockDim.x - 1 - threadIdx.x] + (int) b + (int) c + i;
                    }
                    """);

    private final CudaContext context = CudaContext.retain(Gpu.required());
    private final Nvrtc nvrtc = NvrtcNative.required();
    private final CudaStream stream = CudaStream.create(context);
    private final PinnedMemory host = PinnedMemory.allocate(context, 4096);
    private final DeviceBuffer buffer = DeviceBuffer.allocate(context, 4096);
    private final KernelArguments arguments =
            new KernelArguments().address(buffer.span()).int32(100).int64(1000).float32(7.5f);

    @AfterEach
    void nothingIsLeft() {
        buffer.close();
        host.close();
        stream.close();
        assertThat(context.liveObjects()).isZero();
        context.close();
    }

    @Test
    void machineCodeAndPtxRun() {
        KernelTarget own = KernelTarget.machineCode(context.device().computeCapability());
        for (KernelTarget target : List.of(own, new KernelTarget("compute_75"))) {
            byte[] image = nvrtc.compile(ADD, target, List.of());
            try (CudaModule module = CudaModule.load(context, "add", image)) {
                stream.fill(buffer.span(), (byte) 0);

                stream.launch(module.function("add"), LaunchShape.of(4, 256), arguments);
                stream.copyToHost(buffer.span(), host, 0);
                stream.synchronize();

                for (int i = 0; i < 1024; i++) {
                    assertThat(host.segment().getAtIndex(JAVA_INT, i)).isEqualTo(1107 + i);
                }
            }
        }
    }

    @Test
    void aLaunchThatDoesNotFitTheKernelIsRefused() {
        byte[] image = nvrtc.compile(ADD, new KernelTarget("compute_75"), List.of());
        try (CudaModule module = CudaModule.load(context, "add", image)) {
            CudaFunction add = module.function("add");
            KernelArguments swapped =
                    new KernelArguments().address(buffer.span()).int64(1).int32(1).float32(1);

            assertThatThrownBy(() -> stream.launch(add, LaunchShape.of(1, 1), swapped))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("[8, 8, 4, 4] bytes, the kernel takes [8, 4, 8, 4]");
            assertThatThrownBy(
                            () -> stream.launch(add, LaunchShape.of(1, 1), new KernelArguments()))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void whatIsNotThereIsNamed() {
        byte[] image = nvrtc.compile(ADD, new KernelTarget("compute_75"), List.of());
        CudaModule module = CudaModule.load(context, "add", image);
        CudaFunction add = module.function("add");

        assertThatThrownBy(() -> module.function("subtract"))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("name=subtract of module add")
                .hasMessageContaining("CUDA_ERROR_NOT_FOUND");
        module.close();
        assertThatThrownBy(() -> stream.launch(add, LaunchShape.of(1, 1), arguments))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("module add is closed");
    }

    @Test
    void anImageThatIsNoneFailsWithTheDriversLog() {
        byte[] ptx =
                (".version 7.0\n.target sm_75\n.address_size 64\n" + "nonsense ".repeat(9))
                        .getBytes(StandardCharsets.UTF_8);

        assertThatThrownBy(() -> CudaModule.load(context, "bad", ptx))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("module=bad")
                .hasMessageContaining("CUDA_ERROR_INVALID_PTX")
                .hasMessageContaining("ptxas");
        assertThatThrownBy(() -> CudaModule.load(context, "none", new byte[0]))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
