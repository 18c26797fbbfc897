package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.StandInDriver;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** That a call of the driver that fails leaves nothing behind; on the stand-in. */
class FailedStepTest {
    private final StandInDriver driver = CudaDrivers.standIn();
    private final long before = driver.live();
    private final CudaContext context = CudaContext.retain(Gpu.any());
    private final long unit = PhysicalMemory.granularityBytes(context);

    @AfterEach
    void nothingIsLeft() {
        context.close();
        assertThat(driver.live()).isEqualTo(before);
        assertThat(driver.usedBytes()).isZero();
    }

    @Test
    void aMappingWithoutAccessIsTakenBack() {
        try (AddressRange range = AddressRange.reserve(context, unit);
                PhysicalMemory memory = PhysicalMemory.allocate(context, unit)) {
            driver.fail("cuMemSetAccess", 0, StandInDriver.OUT_OF_MEMORY);

            assertThatThrownBy(() -> range.map(0, memory, MemoryAccess.READ))
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("cuMemSetAccess failed: offsetBytes=0");

            assertThat(range.mappedBytes()).isZero();
            range.map(0, memory, MemoryAccess.READ);
        }
    }

    @Test
    void anUnmapThatFailsIsRepeatedByClose() {
        AddressRange range = AddressRange.reserve(context, 2 * unit);
        for (int i = 0; i < 2; i++) {
            try (PhysicalMemory memory = PhysicalMemory.allocate(context, unit)) {
                range.map(i * unit, memory, MemoryAccess.READ);
            }
        }
        driver.fail("cuMemUnmap", 0, StandInDriver.OUT_OF_MEMORY);

        assertThatThrownBy(range::unmapAll)
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("cuMemUnmap failed: offsetBytes=0");

        assertThat(range.mappedBytes()).isEqualTo(2 * unit);
        range.close();
    }

    @Test
    void closeFinishesItsStepsAndTellsTheFirstFailure() {
        PinnedMemory host = PinnedMemory.allocate(context, 10);
        DeviceBuffer device = DeviceBuffer.allocate(context, 10);
        for (CudaObject object : new CudaObject[] {host, device}) {
            driver.fail("cuCtxSynchronize", 0, StandInDriver.OUT_OF_MEMORY);

            assertThatThrownBy(object::close)
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("cuCtxSynchronize");

            assertThat(object.isOpen()).isFalse();
            object.close();
        }
        assertThatThrownBy(() -> host.segment().fill((byte) 0))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aKernelThatIsNotLoadedLeavesNoModule(@TempDir Path folder) {
        KernelCache cache = new KernelCache(folder, NvrtcNative.required());
        for (int call = 0; call < 3; call++) {
            driver.fail("cuModuleGetFunction", call, StandInDriver.OUT_OF_MEMORY);
            assertThatThrownBy(() -> GatherKernel.load(context, cache))
                    .isInstanceOf(CudaException.class);
            assertThat(context.liveObjects()).isZero();
        }
    }

    @Test
    void aContextIsRetainedOnceAndStaysWithTheThreadsThatHadIt() {
        driver.fail("cuDevicePrimaryCtxRetain", 0, StandInDriver.OUT_OF_MEMORY);

        CudaContext again = CudaContext.retain(context.device()); // asks the driver for nothing
        assertThat(again.handle()).isEqualTo(context.handle());
        again.close();
        again.close();
        assertThatThrownBy(again::synchronize).isInstanceOf(IllegalStateException.class);
        context.synchronize();
        driver.fail("", 0, 0);
    }

    @Test
    void everyThreadGetsTheContext() throws InterruptedException {
        try (CudaStream stream = CudaStream.create(context);
                DeviceBuffer buffer = DeviceBuffer.allocate(context, 10)) {
            Thread thread = new Thread(() -> stream.fill(buffer.span(), (byte) 1));
            Throwable[] failure = new Throwable[1];
            thread.setUncaughtExceptionHandler((t, e) -> failure[0] = e);
            thread.start();
            thread.join();
            assertThat(failure[0]).isNull();
        }
    }
}
