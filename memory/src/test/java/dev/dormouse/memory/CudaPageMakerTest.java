package dev.dormouse.memory;

import static dev.dormouse.memory.MemoryTag.KV_CACHE;
import static dev.dormouse.memory.MemoryTag.WEIGHTS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.StandInDriver;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The ring that a device's tags share; on the machine's GPU, or the stand-in. */
final class CudaPageMakerTest {
    private static final StagingRing.Shape SHAPE = new StagingRing.Shape(64 << 10, 2);
    private static final long UNIT = 2L << 20;
    private static final Set<MemoryTag> ALL = EnumSet.allOf(MemoryTag.class);
    private static final Set<MemoryTag> WEIGHTS_ONLY = Set.of(WEIGHTS);

    private CudaContext context;
    private DeviceMemory memory;
    private long roomBytes = Long.MAX_VALUE;

    @BeforeEach
    void reserve() {
        CudaDrivers.requireAny();
        context = CudaContext.retain(CudaDriver.load().device(0));
        memory =
                DeviceMemory.reserve(
                        MemoryOptions.of(Map.of(WEIGHTS, 3 * UNIT, KV_CACHE, UNIT)),
                        new CudaPageMaker(context, UNIT, SHAPE, () -> roomBytes),
                        System::nanoTime);
        memory.wake(ALL);
        fill(WEIGHTS, 7);
        fill(KV_CACHE, 9);
    }

    @AfterEach
    void nothingIsLeft() {
        if (context != null) {
            memory.close();
            assertThat(memory.stagingBytes()).isZero();
            assertThat(context.liveObjects()).isZero();
            context.close();
        }
    }

    @Test
    void allTagsShareOneRingFromTheFirstKeptContentOn() {
        memory.sleep(ALL, Retention.DISCARD);
        memory.wake(ALL);
        fill(WEIGHTS, 7);
        fill(KV_CACHE, 9);
        assertThat(memory.stagingBytes()).isZero();
        for (int cycle = 0; cycle < 3; cycle++) {
            memory.sleep(ALL, Retention.KEEP_ON_HOST);
            assertThat(memory.stagingBytes()).isEqualTo(SHAPE.lengthBytes());
            assertThat(memory.backupBytes()).isEqualTo(4 * UNIT);
            memory.wake(ALL);
            assertThat(memory.backupBytes()).isZero();
            assertThat(read(WEIGHTS)).hasSize((int) (3 * UNIT)).containsOnly(7);
            assertThat(read(KV_CACHE)).hasSize((int) UNIT).containsOnly(9);
        }
    }

    @Test
    void aHostWithoutRoomIsRefusedBeforeAnythingIsTaken() {
        roomBytes = 3 * UNIT + SHAPE.lengthBytes() - 1;
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST))
                .withMessageContaining("room for " + roomBytes);
        assertThat(memory.stagingBytes()).isZero();
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
        assertThat(read(WEIGHTS)).containsOnly(7);

        roomBytes++;
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        memory.wake(WEIGHTS_ONLY);
        roomBytes = 3 * UNIT; // the ring is there
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
    }

    @Test
    void aRingThatCannotBeMadeLeavesTheMemoryAwakeAndIsTriedAgain() {
        StandInDriver driver = CudaDrivers.standIn();
        driver.fail("cuMemHostAlloc", 0, StandInDriver.OUT_OF_MEMORY);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST))
                .withMessageContaining("AWAKE");
        assertThat(read(WEIGHTS)).containsOnly(7);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        memory.wake(WEIGHTS_ONLY);
        assertThat(read(WEIGHTS)).containsOnly(7);
    }

    @Test
    void copiesThatFailLeaveTheContentWhereItWas() {
        StandInDriver driver = CudaDrivers.standIn();
        driver.fail("cuMemcpyDtoHAsync_v2", 20, StandInDriver.OUT_OF_MEMORY);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST))
                .withMessageContaining("AWAKE");
        assertThat(read(WEIGHTS)).containsOnly(7);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        driver.fail("cuMemcpyHtoDAsync_v2", 20, StandInDriver.OUT_OF_MEMORY);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.wake(WEIGHTS_ONLY));
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.ASLEEP);
        assertThat(memory.backupBytes()).isEqualTo(3 * UNIT);
        memory.wake(WEIGHTS_ONLY);
        assertThat(read(WEIGHTS)).containsOnly(7);
    }

    @Test
    void aRingThatCannotBeGivenBackIsTold() {
        StandInDriver driver = CudaDrivers.standIn();
        memory.sleep(ALL, Retention.KEEP_ON_HOST);
        driver.fail("cuMemFreeHost", 0, StandInDriver.OUT_OF_MEMORY);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(memory::close)
                .withMessageContaining("staging memory");
    }

    private void fill(MemoryTag tag, int value) {
        try (CudaStream stream = CudaStream.create(context)) {
            stream.fill(memory.span(tag), (byte) value);
            stream.synchronize();
        }
    }

    private byte[] read(MemoryTag tag) {
        try (CudaStream stream = CudaStream.create(context);
                PinnedMemory host = PinnedMemory.allocate(context, memory.lengthBytes(tag))) {
            stream.copyToHost(memory.span(tag), host, 0);
            stream.synchronize();
            return host.segment().toArray(JAVA_BYTE);
        }
    }
}
