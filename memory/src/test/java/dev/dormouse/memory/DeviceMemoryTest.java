package dev.dormouse.memory;

import static dev.dormouse.memory.MemoryTag.KV_CACHE;
import static dev.dormouse.memory.MemoryTag.WEIGHTS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.dormouse.memory.ModelDevice.Step;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every step of sleep and wake, on a model of a device that counts what it gave. */
class DeviceMemoryTest {
    private static final long TOTAL = 1_000;
    private static final long WEIGHT_BYTES = 61;
    private static final long KV_BYTES = 120;
    private static final Set<MemoryTag> ALL = EnumSet.allOf(MemoryTag.class);
    private static final Set<MemoryTag> KV = Set.of(KV_CACHE);
    private static final Set<MemoryTag> WEIGHTS_ONLY = Set.of(WEIGHTS);

    private final ModelDevice device = new ModelDevice(TOTAL);
    private final Map<Long, ModelDevice.Pages> pages = new HashMap<>();
    private final DeviceMemory memory =
            DeviceMemory.reserve(
                    MemoryOptions.of(Map.of(WEIGHTS, WEIGHT_BYTES, KV_CACHE, KV_BYTES)),
                    length -> {
                        ModelDevice.Pages made = (ModelDevice.Pages) device.reserve(length);
                        pages.put(made.address(), made);
                        return made;
                    },
                    () -> 0);

    @AfterEach
    void nothingIsLeft() {
        memory.close();
        memory.close();
        assertThat(device.freeBytes()).isEqualTo(TOTAL);
        assertThat(device.backupBytes()).isZero();
        assertThat(device.openRanges()).isZero();
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.CLOSED);
        assertThatIllegalStateException().isThrownBy(() -> memory.wake(ALL));
    }

    @Test
    void reservingTakesNoMemoryAndWholeGranulesOfAddresses() {
        assertThat(memory.lengthBytes(WEIGHTS)).isEqualTo(64);
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.ASLEEP);
        assertThat(device.freeBytes()).isEqualTo(TOTAL);
    }

    @Test
    void tagsSleepAndWakeOnTheirOwnAtTheSameAddress() {
        long address = memory.address(KV_CACHE);
        assertThat(memory.wake(ALL).mappedBytes()).isEqualTo(Map.of(WEIGHTS, 64L, KV_CACHE, 120L));
        assertThat(memory.wake(ALL).mappedBytes()).isEmpty();
        assertThat(memory.sleep(KV, Retention.DISCARD).releasedBytes())
                .isEqualTo(Map.of(KV_CACHE, 120L));
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
        assertThat(device.freeBytes()).isEqualTo(TOTAL - 64);
        memory.wake(KV);
        assertThat(memory.span(KV_CACHE).address()).isEqualTo(address);
    }

    @Test
    void whatIsKeptOnTheHostIsBackAfterTheWakeAndNoBackupStays() {
        memory.wake(ALL);
        fill(WEIGHTS, 7);
        fill(KV_CACHE, 9);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        memory.sleep(KV, Retention.DISCARD);
        assertThat(memory.backupBytes()).isEqualTo(64);
        assertThat(device.freeBytes()).isEqualTo(TOTAL);
        memory.wake(ALL);
        assertThat(content(WEIGHTS)).containsOnly(7);
        assertThat(content(KV_CACHE)).containsOnly(0);
        assertThat(memory.backupBytes()).isZero();
        assertThat(device.backupBytes()).isZero();
    }

    @Test
    void aSecondSleepKeepsWhatTheFirstOneKept() {
        memory.wake(ALL);
        fill(WEIGHTS, 7);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        assertThat(memory.sleep(WEIGHTS_ONLY, Retention.DISCARD).releasedBytes()).isEmpty();
        memory.wake(WEIGHTS_ONLY);
        assertThat(content(WEIGHTS)).containsOnly(7);
    }

    @ParameterizedTest
    @EnumSource(names = {"BACK_UP", "UNMAP"})
    void aSleepThatFailsLeavesTheMemoryAwakeWithItsContent(Step step) {
        memory.wake(ALL);
        fill(WEIGHTS, 7);
        device.fail(step, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST))
                .withMessageContaining("sleep weights")
                .withMessageContaining("AWAKE");
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
        assertThat(content(WEIGHTS)).containsOnly(7);
        assertThat(device.backupBytes()).isZero();
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        memory.wake(WEIGHTS_ONLY);
        assertThat(content(WEIGHTS)).containsOnly(7);
    }

    @ParameterizedTest
    @EnumSource(names = {"MAP", "RESTORE"})
    void aWakeThatFailsLeavesTheMemoryAsleepWithWhatWasKept(Step step) {
        memory.wake(WEIGHTS_ONLY);
        fill(WEIGHTS, 7);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        device.fail(step, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.wake(WEIGHTS_ONLY))
                .withMessageContaining("ASLEEP");
        assertThat(device.freeBytes()).isEqualTo(TOTAL);
        memory.wake(WEIGHTS_ONLY);
        assertThat(content(WEIGHTS)).containsOnly(7);
        assertThat(memory.backupBytes()).isZero();
    }

    @Test
    void aDeviceWithoutRoomIsNamedWithBothSizesAndASecondTryWorks() {
        ModelDevice.Pages other = (ModelDevice.Pages) device.reserve(TOTAL - 100);
        other.map();
        assertThatExceptionOfType(NotEnoughMemoryException.class)
                .isThrownBy(() -> memory.wake(KV))
                .satisfies(
                        e -> {
                            assertThat(e.neededBytes()).isEqualTo(120);
                            assertThat(e.availableBytes()).isEqualTo(device.freeBytes());
                        });
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.ASLEEP);
        other.close();
        memory.wake(KV);
    }

    @Test
    void memoryOfWhichAPartStayedIsLostAndSaysSo() {
        memory.wake(ALL);
        device.fail(Step.UNMAP_HALF, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.sleep(KV, Retention.DISCARD))
                .withMessageContaining("LOST");
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.wake(KV))
                .withMessageContaining("restart");
        assertThatExceptionOfType(MemoryException.class).isThrownBy(() -> memory.span(KV_CACHE));
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
    }

    @Test
    void aFailedRestoreThatCannotBeUndoneIsLost() {
        memory.wake(WEIGHTS_ONLY);
        memory.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        device.fail(Step.RESTORE, 1);
        device.fail(Step.UNMAP, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.wake(WEIGHTS_ONLY))
                .satisfies(
                        e ->
                                assertThat(e)
                                        .extracting(Throwable::getCause)
                                        .satisfies(
                                                cause ->
                                                        assertThat(cause.getSuppressed())
                                                                .hasSize(1)));
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.LOST);
    }

    @Test
    void asleepNothingIsGivenOut() {
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.span(KV_CACHE))
                .withMessageContaining("asleep");
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.export(KV_CACHE))
                .withMessageContaining("asleep");
        memory.wake(KV);
        device.fail(Step.EXPORT, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> memory.export(KV_CACHE))
                .withMessageContaining("export kv_cache");
        assertThat(memory.export(KV_CACHE).pieces()).isEmpty();
    }

    @Test
    void aTagThatWasNotReservedIsRefused() {
        try (DeviceMemory one =
                DeviceMemory.reserve(
                        MemoryOptions.of(Map.of(KV_CACHE, 8L)), device::reserve, () -> 0)) {
            assertThatIllegalArgumentException().isThrownBy(() -> one.wake(WEIGHTS_ONLY));
        }
    }

    @Test
    void aReservationThatFailsLeavesNone() {
        device.fail(Step.RESERVE, 1);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(
                        () ->
                                DeviceMemory.reserve(
                                        MemoryOptions.of(Map.of(KV_CACHE, 8L)),
                                        device::reserve,
                                        () -> 0))
                .withMessageContaining("reserve kv_cache");
        assertThat(device.openRanges()).isEqualTo(2);
    }

    @Test
    void aCloseThatFailsHasTriedEverything() {
        ModelDevice broken = new ModelDevice(TOTAL);
        DeviceMemory other =
                DeviceMemory.reserve(
                        MemoryOptions.of(Map.of(WEIGHTS, 8L, KV_CACHE, 8L)),
                        broken::reserve,
                        () -> 0);
        other.wake(ALL);
        other.sleep(WEIGHTS_ONLY, Retention.KEEP_ON_HOST);
        broken.fail(Step.CLOSE, 2);
        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(other::close)
                .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
        assertThat(broken.openRanges()).isZero();
        assertThat(broken.backupBytes()).isZero();
        other.close();
    }

    private void fill(MemoryTag tag, int value) {
        Arrays.fill(content(tag), (byte) value);
    }

    private byte[] content(MemoryTag tag) {
        return Objects.requireNonNull(pages.get(memory.address(tag))).content();
    }
}
