package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What NVML tells of a GPU, against what the driver does. */
class NvmlTest {
    private final CudaDevice device = Gpu.required();

    @Test
    void memoryThatIsTakenIsCounted() {
        try (Nvml nvml = Nvml.load();
                CudaContext context = CudaContext.retain(device)) {
            NvmlMemory before = nvml.memory(device.uuid());
            try (PhysicalMemory memory = PhysicalMemory.allocate(context, 1L << 30)) {
                NvmlMemory during = nvml.memory(device.uuid());

                assertThat(during.usedBytes() - before.usedBytes())
                        .isGreaterThanOrEqualTo(memory.lengthBytes());
                assertThat(during.freeBytes()).isLessThan(before.freeBytes());
                assertThat(during.totalBytes()).isGreaterThanOrEqualTo(device.totalBytes());
            }
            nvml.processes(device.uuid())
                    .ifPresent(
                            processes ->
                                    assertThat(processes).allMatch(process -> process.pid() > 0));
            assertThat(nvml.activeNvLinks(device.uuid())).isBetween(0, NvmlApi.MAX_LINKS);
        }
    }

    @Test
    void anUnknownDeviceAndAClosedLibraryAreRefused() {
        Nvml nvml = Nvml.load();
        assertThatThrownBy(() -> nvml.memory(new UUID(1, 2)))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("nvmlDeviceGetHandleByUUID failed: 00000000-0000-0001");
        nvml.close();
        nvml.close();
        assertThatThrownBy(() -> nvml.memory(device.uuid()))
                .isInstanceOf(IllegalStateException.class);
    }
}
