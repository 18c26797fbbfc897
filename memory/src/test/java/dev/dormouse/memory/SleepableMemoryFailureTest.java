package dev.dormouse.memory;

import static dev.dormouse.memory.MemoryTag.KV_CACHE;
import static dev.dormouse.memory.MemoryTag.WEIGHTS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.foreign.LibcException;
import dev.dormouse.memory.TestPageCalls.Call;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every call of the system fails once: the state stays true, and the next try works. */
class SleepableMemoryFailureTest {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY_BYTES = 40 * MIB;
    private static final Set<MemoryTag> KV = EnumSet.of(KV_CACHE);
    private static final Set<MemoryTag> ALL = EnumSet.allOf(MemoryTag.class);

    private final TestPageCalls calls = new TestPageCalls();
    private SleepableMemory memory;
    private SleepableRegion region;

    @BeforeEach
    void reserve() {
        memory =
                SleepableMemory.reserve(
                        MemoryOptions.of(Map.of(WEIGHTS, MIB, KV_CACHE, CAPACITY_BYTES)),
                        System::nanoTime,
                        calls);
        region = memory.allocate("kv.0", KV_CACHE, CAPACITY_BYTES);
    }

    @AfterEach
    void closeLeavesNothing() {
        calls.heal();
        memory.close();
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.CLOSED);
        assertThat(ProcSelf.memoryFiles()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(names = {"CREATE_FILE", "ALLOCATE", "SEAL", "MAP_FILE", "POPULATE"})
    void aFailedWakeLeavesTheTagAsleepAndTheNextOneWorks(Call call) {
        calls.fail(call);

        assertThatThrownBy(() -> memory.wake(KV))
                .isExactlyInstanceOf(MemoryException.class)
                .hasMessageStartingWith("wake kv_cache failed, it is now ASLEEP: ")
                .hasCauseInstanceOf(LibcException.class);

        assertAsleepWithoutPages();
        calls.heal();
        memory.wake(KV);
        assertUsable();
    }

    @ParameterizedTest
    @EnumSource(names = {"ALLOCATE", "MAP_FILE", "POPULATE"})
    void aWakeThatRunsOutOfMemorySaysWhatItNeeds(Call call) {
        // with ALLOCATE, two of the pieces have their pages already
        calls.runOutOfMemory(call, call == Call.ALLOCATE ? 2 : 0);
        calls.allocatableBytes = OptionalLong.of(1L << 40);

        assertThatThrownBy(() -> memory.wake(KV))
                .isInstanceOfSatisfying(
                        NotEnoughMemoryException.class,
                        e -> {
                            assertThat(e.neededBytes()).isEqualTo(CAPACITY_BYTES);
                            assertThat(e.availableBytes()).isEqualTo(1L << 40);
                        })
                .hasCauseInstanceOf(LibcException.class);

        assertAsleepWithoutPages();
        calls.heal();
        memory.wake(KV);
        assertUsable();
    }

    @Test
    void aWakeThatWouldNotFitTakesNothing() {
        calls.fail(Call.CREATE_FILE); // not to be reached
        calls.allocatableBytes = OptionalLong.of(CAPACITY_BYTES + 63 * MIB);

        assertThatThrownBy(() -> memory.wake(KV)).isInstanceOf(NotEnoughMemoryException.class);

        assertAsleepWithoutPages();
        calls.heal();
        calls.allocatableBytes = OptionalLong.of(CAPACITY_BYTES + 64 * MIB);
        memory.wake(KV);
        assertUsable();
    }

    @Test
    void aFailedSleepLeavesTheTagAwakeWithItsContent() {
        memory.wake(KV);
        MemorySegment cached = fillWith((byte) 42);
        calls.fail(Call.MAP_SLEEPING);

        assertThatThrownBy(() -> memory.sleep(KV))
                .hasMessageStartingWith("sleep kv_cache failed, it is now AWAKE: ");

        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.AWAKE);
        assertThatThrownBy(() -> cached.get(JAVA_BYTE, 0))
                .isInstanceOf(IllegalStateException.class);
        try (MemoryLease lease = region.lease("test")) {
            assertThat(lease.segment().get(JAVA_BYTE, CAPACITY_BYTES - 1)).isEqualTo((byte) 42);
        }
        calls.heal();
        assertThat(memory.sleep(KV).releasedBytes()).containsOnlyKeys(KV_CACHE);
        assertAsleepWithoutPages();
    }

    @Test
    void aFailedCloseOfTheFileIsReportedAndTheTagSleepsAllTheSame() {
        memory.wake(KV);
        fillWith((byte) 42);
        calls.fail(Call.CLOSE_FILE);

        assertThatThrownBy(() -> memory.sleep(KV))
                .hasMessageStartingWith("sleep kv_cache failed, it is now ASLEEP: ");

        assertAsleepWithoutPages();
        calls.heal();
        assertThat(memory.sleep(KV).releasedBytes()).isEmpty();
        memory.wake(KV);
        assertUsable();
    }

    @Test
    void aFailureWithTheSecondTagKeepsWhatTheFirstHasReached() {
        memory.wake(EnumSet.of(WEIGHTS));
        calls.fail(Call.MAP_FILE);
        assertThatThrownBy(() -> memory.wake(ALL)).isInstanceOf(MemoryException.class);
        assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.ASLEEP);

        calls.heal();
        assertThat(memory.wake(ALL).mappedBytes()).containsOnlyKeys(KV_CACHE);
        assertUsable();
    }

    @Test
    void aSleepThatCanNeitherBeDoneNorUndoneLosesTheTag() {
        memory.wake(KV);
        calls.fail(Call.MAP_SLEEPING);
        calls.fail(Call.MAP_FILE);

        assertThatThrownBy(() -> memory.sleep(KV))
                .hasMessageStartingWith("sleep kv_cache failed, it is now LOST: ");

        assertLost();
    }

    @Test
    void aWakeThatCanNeitherBeDoneNorUndoneLosesTheTag() {
        calls.runOutOfMemory(Call.POPULATE, 0);
        calls.fail(Call.MAP_SLEEPING);

        assertThatThrownBy(() -> memory.wake(KV))
                .isExactlyInstanceOf(MemoryException.class)
                .hasMessageStartingWith("wake kv_cache failed, it is now LOST: ");

        assertLost();
    }

    @Test
    void aFailedCloseMayBeRepeated() {
        memory.wake(KV);
        fillWith((byte) 42);
        calls.fail(Call.UNMAP);

        assertThatThrownBy(memory::close)
                .hasMessageStartingWith("close weights failed, it is now ASLEEP: ")
                .satisfies(
                        e ->
                                assertThat(e.getSuppressed()[0])
                                        .hasMessageStartingWith(
                                                "close kv_cache failed, it is now AWAKE: "));

        try (MemoryLease lease = region.lease("test")) {
            assertThat(lease.segment().get(JAVA_BYTE, 0)).isEqualTo((byte) 42);
        }
    }

    @Test
    void aFailedReservationGivesTheFirstTagBack() {
        TestPageCalls failing = new TestPageCalls();
        failing.runOutOfMemory(Call.RESERVE, 1);
        MemoryOptions options = MemoryOptions.of(Map.of(WEIGHTS, MIB, KV_CACHE, MIB));

        assertThatThrownBy(() -> SleepableMemory.reserve(options, System::nanoTime, failing))
                .isInstanceOf(MemoryException.class)
                .hasMessageMatching("reserve (weights|kv_cache) failed: mmap failed: .*");

        assertThat(failing.unmapped).hasSize(1);
    }

    @Test
    void durationsComeFromTheClock() {
        long[] nanos = {100};
        MemoryOptions options = MemoryOptions.of(Map.of(KV_CACHE, MIB));
        try (SleepableMemory timed =
                SleepableMemory.reserve(options, () -> nanos[0] *= 2, new TestPageCalls())) {
            assertThat(timed.wake(KV).durationNanos()).isEqualTo(200);
            assertThat(timed.sleep(KV).durationNanos()).isEqualTo(800);
        }
    }

    @Test
    void anExportThatFailsChangesNothing() {
        memory.wake(KV);
        calls.fail(Call.DUPLICATE);
        assertThatThrownBy(() -> memory.export(KV_CACHE))
                .isExactlyInstanceOf(MemoryException.class)
                .hasMessageStartingWith("export kv_cache failed, it is now AWAKE: ");
        assertUsable();
    }

    private MemorySegment fillWith(byte value) {
        try (MemoryLease lease = region.lease("test")) {
            return lease.segment().fill(value);
        }
    }

    private void assertUsable() {
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.AWAKE);
        assertThat(calls.allocatedUpToBytes).isEqualTo(CAPACITY_BYTES);
        fillWith((byte) 1);
    }

    private void assertAsleepWithoutPages() {
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.ASLEEP);
        assertThat(ProcSelf.memoryFiles()).isEmpty();
        assertThatThrownBy(() -> region.lease("test")).isInstanceOf(RegionAsleepException.class);
        MemorySegment raw =
                MemorySegment.ofAddress(region.address()).reinterpret(region.lengthBytes());
        raw.set(JAVA_BYTE, CAPACITY_BYTES - 1, (byte) 5);
        assertThat(raw.get(JAVA_BYTE, 0)).isZero();
    }

    private void assertLost() {
        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.LOST);
        calls.heal();
        assertThatThrownBy(() -> memory.wake(KV))
                .isInstanceOf(MemoryException.class)
                .hasMessageContaining("kv_cache is lost");
        assertThatThrownBy(() -> memory.sleep(ALL)).hasMessageContaining("kv_cache is lost");
        assertThatThrownBy(() -> region.lease("test")).hasMessageContaining("kv_cache is lost");
        assertThat(memory.wake(EnumSet.of(WEIGHTS)).mappedBytes()).containsOnlyKeys(WEIGHTS);

        memory.close();
        assertThat(calls.unmapped).containsExactly(memory.address(WEIGHTS));
    }
}
