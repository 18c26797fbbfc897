package dev.dormouse.memory;

import static dev.dormouse.memory.MemoryTag.KV_CACHE;
import static dev.dormouse.memory.MemoryTag.WEIGHTS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousServerSocketChannel;
import java.nio.channels.AsynchronousSocketChannel;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** On the real system: pages, addresses and descriptors are the kernel's. */
class SleepableMemoryTest {
    private static final long MIB = 1L << 20;
    private static final Set<MemoryTag> KV = EnumSet.of(KV_CACHE);
    private static final Set<MemoryTag> ALL = EnumSet.allOf(MemoryTag.class);

    @AfterEach
    void noMemoryFileIsLeft() {
        assertThat(ProcSelf.memoryFiles()).isEmpty();
    }

    @Test
    void pagesReturnToTheSystemWhenSleepReturns() {
        long bytes = 64 * MIB;
        try (SleepableMemory memory = kvMemory(bytes)) {
            memory.wake(KV);
            memory.sleep(KV); // loads every class, so that the numbers below are pages alone

            MemoryUsage before = MemoryUsage.ofThisProcess();
            WakeReport wake = memory.wake(KV);
            MemoryUsage awake = MemoryUsage.ofThisProcess();
            SleepReport sleep = memory.sleep(KV);
            MemoryUsage asleep = MemoryUsage.ofThisProcess();
            memory.wake(KV);
            MemoryUsage woken = MemoryUsage.ofThisProcess();

            assertThat(wake.mappedBytes()).isEqualTo(Map.of(KV_CACHE, bytes));
            assertThat(sleep.releasedBytes()).isEqualTo(Map.of(KV_CACHE, bytes));
            assertThat(awake.pssShmemBytes() - before.pssShmemBytes())
                    .isCloseTo(bytes, within(MIB));
            assertThat(awake.pssShmemBytes() - asleep.pssShmemBytes())
                    .isCloseTo(bytes, within(MIB));
            assertThat(woken.pssShmemBytes() - asleep.pssShmemBytes())
                    .isCloseTo(bytes, within(MIB));
            assertThat(awake.pssBytes() - asleep.pssBytes()).isCloseTo(bytes, within(bytes / 20));
            assertThat(woken.pssBytes() - asleep.pssBytes()).isCloseTo(bytes, within(bytes / 20));
        }
    }

    @Test
    void anExportedFileHasTheBytesOfThisWakeAndKeepsItsLength() {
        try (SleepableMemory memory = kvMemory(MIB)) {
            SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
            assertThatThrownBy(() -> memory.export(KV_CACHE))
                    .isInstanceOf(RegionAsleepException.class)
                    .hasMessage("export kv_cache refused: kv_cache is asleep; wake it first");
            memory.wake(KV);
            int file = memory.export(KV_CACHE);
            MemorySegment view = Libc.map(MIB, Libc.PROT_READ, Libc.MAP_SHARED, file, 0);
            int fixedLength = MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW;
            assertThat(MemoryFile.seals(file) & fixedLength).isEqualTo(fixedLength);
            try (MemoryLease lease = region.lease("test")) {
                lease.segment().set(JAVA_BYTE, MIB - 1, (byte) 7);
            }
            assertThat(view.get(JAVA_BYTE, MIB - 1)).isEqualTo((byte) 7);

            memory.sleep(KV);
            memory.wake(KV);

            try (MemoryLease lease = region.lease("test")) {
                lease.segment().set(JAVA_BYTE, MIB - 1, (byte) 9);
            }
            assertThat(view.get(JAVA_BYTE, MIB - 1)).isEqualTo((byte) 7);
            int next = memory.export(KV_CACHE);
            assertThat(MemoryFile.status(next).inode())
                    .isNotEqualTo(MemoryFile.status(file).inode());
            Libc.unmap(view);
            Libc.close(file);
            Libc.close(next);
        }
    }

    @Test
    void addressesStayAndContentGoesOverTwentyCycles() {
        try (SleepableMemory memory = kvMemory(MIB)) {
            SleepableRegion first = memory.allocate("kv.0", KV_CACHE, MIB / 2);
            SleepableRegion second = memory.allocate("kv.1", KV_CACHE, MIB / 2);
            long firstAddress = first.address();
            long secondAddress = second.address();
            assertThat(firstAddress).isEqualTo(memory.address(KV_CACHE));
            for (int cycle = 1; cycle <= 20; cycle++) {
                memory.wake(KV);
                try (MemoryLease lease = second.lease("test")) {
                    assertThat(lease.segment().address()).isEqualTo(secondAddress);
                    assertThat(countOf((byte) cycle, lease.segment())).isZero();
                    lease.segment().fill((byte) (cycle + 1));
                }
                memory.sleep(KV);
            }
            assertThat(first.address()).isEqualTo(firstAddress);
            assertThat(second.address()).isEqualTo(secondAddress);
        }
    }

    @Test
    void segmentsFromBeforeASleepThrowForEver() {
        try (SleepableMemory memory = kvMemory(MIB)) {
            SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
            memory.wake(KV);
            MemorySegment cached;
            try (MemoryLease lease = region.lease("test")) {
                cached = lease.segment();
                assertThat(cached.get(JAVA_BYTE, 0)).isZero();
            }

            memory.sleep(KV);
            assertThatThrownBy(() -> cached.get(JAVA_BYTE, 0))
                    .isInstanceOf(IllegalStateException.class);
            memory.wake(KV);
            assertThatThrownBy(() -> cached.set(JAVA_BYTE, 0, (byte) 1))
                    .isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aLeaseKeepsTheTagAwakeAndIsNamed() {
        try (SleepableMemory memory = memory(MIB, MIB)) {
            SleepableRegion weights = memory.allocate("weights", WEIGHTS, MIB);
            SleepableRegion region = memory.allocate("kv.7", KV_CACHE, MIB);
            memory.wake(ALL);
            MemoryLease lease = region.lease("engine step");
            lease.segment().set(JAVA_BYTE, 5, (byte) 42);

            assertThatThrownBy(() -> memory.sleep(ALL))
                    .isInstanceOfSatisfying(
                            MemoryInUseException.class,
                            e -> {
                                assertThat(e.tag()).isEqualTo(KV_CACHE);
                                assertThat(e.holders()).containsExactly("engine step (kv.7)");
                            })
                    .hasMessage(
                            "sleep kv_cache refused: in use by engine step (kv.7); close the leases"
                                    + " first");
            assertThatThrownBy(memory::close).isInstanceOf(MemoryInUseException.class);

            assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
            assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.AWAKE);
            assertThat(lease.segment().get(JAVA_BYTE, 5)).isEqualTo((byte) 42);
            weights.lease("test").close();
            lease.close();
            lease.close();
            assertThatThrownBy(lease::segment)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("engine step (kv.7)");
            assertThat(memory.sleep(ALL).releasedBytes()).containsOnlyKeys(WEIGHTS, KV_CACHE);
        }
    }

    @Test
    void aNativeCallThatHoldsASegmentPastItsLeaseKeepsTheTagAwake() throws Exception {
        try (SleepableMemory memory = kvMemory(MIB);
                AsynchronousServerSocketChannel server =
                        AsynchronousServerSocketChannel.open()
                                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
                AsynchronousSocketChannel reader = AsynchronousSocketChannel.open()) {
            Future<AsynchronousSocketChannel> accepted = server.accept();
            reader.connect(server.getLocalAddress()).get(30, TimeUnit.SECONDS);
            try (AsynchronousSocketChannel writer = accepted.get(30, TimeUnit.SECONDS)) {
                SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
                memory.wake(KV);
                Future<Integer> pending;
                try (MemoryLease lease = region.lease("test")) {
                    // such a read holds the segment until data come, as a downcall does
                    pending = reader.read(lease.segment().asByteBuffer());
                }

                assertThatThrownBy(() -> memory.sleep(KV))
                        .isInstanceOf(MemoryInUseException.class)
                        .hasMessageContaining("a native call");
                assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.AWAKE);

                writer.write(ByteBuffer.wrap(new byte[] {42})).get(30, TimeUnit.SECONDS);
                assertThat(pending.get(30, TimeUnit.SECONDS)).isEqualTo(1);
                try (MemoryLease lease = region.lease("test")) {
                    assertThat(lease.segment().get(JAVA_BYTE, 0)).isEqualTo((byte) 42);
                }
                memory.sleep(KV);
            }
        }
    }

    @Test
    void asleepRegionsGiveNoLease() {
        try (SleepableMemory memory = memory(MIB, MIB)) {
            SleepableRegion region = memory.allocate("kv.3", KV_CACHE, MIB);
            memory.wake(EnumSet.of(WEIGHTS));

            assertThatThrownBy(() -> region.lease("test"))
                    .isInstanceOfSatisfying(
                            RegionAsleepException.class,
                            e -> {
                                assertThat(e.region()).isEqualTo("kv.3");
                                assertThat(e.tag()).isEqualTo(KV_CACHE);
                            })
                    .hasMessage("lease kv.3 refused: kv_cache is asleep; wake it first");
        }
    }

    @Test
    void strayNativeAccessToASleepingRangeFindsZerosAndIsForgotten() throws Exception {
        try (SleepableMemory memory = kvMemory(MIB)) {
            SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
            memory.wake(KV);
            try (MemoryLease lease = region.lease("test")) {
                lease.segment().fill((byte) 42);
            }
            memory.sleep(KV);

            // what a transport does on a peer's behalf: plain addresses, no Java lifetime
            MemorySegment raw = MemorySegment.ofAddress(region.address()).reinterpret(MIB);
            assertThat(raw.mismatch(filled(MIB, (byte) 0))).isEqualTo(-1);
            raw.set(JAVA_BYTE, 100, (byte) 7);
            // what another process's process_vm_readv does
            byte[] seen = new byte[4096];
            try (RandomAccessFile self = new RandomAccessFile("/proc/self/mem", "r")) {
                self.seek(region.address() + 8192);
                self.readFully(seen);
            }
            assertThat(seen).containsOnly(0);

            memory.wake(KV);
            try (MemoryLease lease = region.lease("test")) {
                assertThat(lease.segment().get(JAVA_BYTE, 100)).isZero();
            }
        }
    }

    @Test
    void tagsSleepAndWakeIndependentlyAndRepetitionChangesNothing() {
        try (SleepableMemory memory = memory(2 * MIB, MIB)) {
            SleepableRegion weights = memory.allocate("weights", WEIGHTS, 2 * MIB);
            assertThat(memory.wake(ALL).mappedBytes())
                    .isEqualTo(Map.of(WEIGHTS, 2 * MIB, KV_CACHE, MIB));
            try (MemoryLease lease = weights.lease("test")) {
                lease.segment().set(JAVA_BYTE, 9, (byte) 42);
            }

            assertThat(memory.sleep(KV).releasedBytes()).containsOnlyKeys(KV_CACHE);
            assertThat(memory.sleep(KV).releasedBytes()).isEmpty();
            assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.AWAKE);
            assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.ASLEEP);
            assertThat(memory.wake(ALL).mappedBytes()).containsOnlyKeys(KV_CACHE);
            assertThat(memory.wake(ALL).mappedBytes()).isEmpty();

            try (MemoryLease lease = weights.lease("test")) {
                assertThat(lease.segment().get(JAVA_BYTE, 9)).isEqualTo((byte) 42);
            }
        }
    }

    @Test
    void poisonShowsAfterEveryWake() {
        MemoryOptions options = MemoryOptions.of(Map.of(KV_CACHE, MIB)).withPoison((byte) 0xA5);
        try (SleepableMemory memory = SleepableMemory.reserve(options, System::nanoTime)) {
            SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
            for (int cycle = 0; cycle < 2; cycle++) {
                memory.wake(KV);
                try (MemoryLease lease = region.lease("test")) {
                    assertThat(lease.segment().mismatch(filled(MIB, (byte) 0xA5))).isEqualTo(-1);
                    lease.segment().fill((byte) 0);
                }
                memory.sleep(KV);
            }
        }
    }

    @Test
    void noDescriptorIsLeftByTwoHundredCycles() {
        try (SleepableMemory memory = memory(64 << 10, 64 << 10)) {
            memory.wake(ALL);
            memory.sleep(ALL);
            int files = ProcSelf.descriptors().size();
            for (int cycle = 0; cycle < 200; cycle++) {
                memory.wake(ALL);
                memory.sleep(ALL);
            }
            assertThat(ProcSelf.descriptors()).hasSize(files);

            memory.wake(ALL);
            assertThat(ProcSelf.descriptors())
                    .contains(
                            "/memfd:dormouse-weights (deleted)",
                            "/memfd:dormouse-kv_cache (deleted)");
        }
    }

    @Test
    void regionsBeyondTwoGibibytesAreReachedToTheLastByte() {
        long gib = 1L << 30;
        MemoryOptions options = MemoryOptions.of(Map.of(KV_CACHE, 6 * gib));
        TestPageCalls calls = new TestPageCalls();
        calls.sparse = true;
        try (SleepableMemory memory = SleepableMemory.reserve(options, System::nanoTime, calls)) {
            SleepableRegion first = memory.allocate("kv.0", KV_CACHE, 3 * gib);
            SleepableRegion second = memory.allocate("kv.1", KV_CACHE, 3 * gib);
            assertThat(second.address()).isEqualTo(first.address() + 3 * gib);

            assertThat(memory.wake(KV).mappedBytes()).isEqualTo(Map.of(KV_CACHE, 6 * gib));
            assertThat(calls.allocatedUpToBytes).isEqualTo(6 * gib);
            try (MemoryLease one = first.lease("test");
                    MemoryLease two = second.lease("test")) {
                one.segment().set(JAVA_LONG, 3 * gib - 8, 41);
                two.segment().set(JAVA_LONG, 3 * gib - 8, 42);
                assertThat(one.segment().get(JAVA_LONG, 3 * gib - 8)).isEqualTo(41);
                assertThat(two.segment().get(JAVA_LONG, 0)).isZero();
                assertThat(two.segment().get(JAVA_LONG, 3 * gib - 8)).isEqualTo(42);
            }
        }
    }

    @Test
    void aWakeBeyondTheMachineIsRefusedBeforeItTakesAnything() {
        long bytes = 1L << 45;
        try (SleepableMemory memory = memory(MIB, bytes)) {
            assertThatThrownBy(() -> memory.wake(ALL))
                    .isInstanceOfSatisfying(
                            NotEnoughMemoryException.class,
                            e -> {
                                assertThat(e.neededBytes()).isEqualTo(bytes + MIB);
                                assertThat(e.availableBytes())
                                        .isPositive()
                                        .isLessThan(SystemMemory.read().totalBytes());
                            })
                    .hasMessageStartingWith(
                            "wake weights and kv_cache refused: needs 35184373137408 bytes, ");

            assertThat(memory.residency(WEIGHTS)).isEqualTo(Residency.ASLEEP);
            assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.ASLEEP);
            assertThat(memory.wake(EnumSet.of(WEIGHTS)).mappedBytes()).containsOnlyKeys(WEIGHTS);
        }
    }

    @Test
    void regionsAreAlignedAndStayWithinTheCapacity() {
        try (SleepableMemory memory = kvMemory(10_000)) {
            assertThat(memory.lengthBytes(KV_CACHE)).isEqualTo(12_288);
            SleepableRegion odd = memory.allocate("odd", KV_CACHE, 1001);
            SleepableRegion next = memory.allocate("next", KV_CACHE, 64);
            assertThat(next.address()).isEqualTo(odd.address() + 1024);
            assertThat(odd.lengthBytes()).isEqualTo(1001);
            assertThat(odd.tag()).isEqualTo(KV_CACHE);

            assertThatThrownBy(() -> memory.allocate("big", KV_CACHE, 11_201))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage(
                            "allocate big (kv_cache) of 11201 bytes: must be 1 to 11200, what is"
                                    + " left of 12288 reserved bytes");
            assertThatThrownBy(() -> memory.allocate("huge", KV_CACHE, Long.MAX_VALUE))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.allocate("none", KV_CACHE, 0))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.allocate("w", WEIGHTS, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("weights was not reserved");
            memory.allocate("rest", KV_CACHE, 11_200);
        }
    }

    @Test
    void closedMemoryRefusesEverythingButAnotherClose() {
        SleepableMemory memory = kvMemory(MIB);
        SleepableRegion region = memory.allocate("kv.0", KV_CACHE, MIB);
        memory.wake(KV);
        MemorySegment cached;
        try (MemoryLease lease = region.lease("test")) {
            cached = lease.segment();
        }
        memory.close();
        memory.close();

        assertThat(memory.residency(KV_CACHE)).isEqualTo(Residency.CLOSED);
        assertThatThrownBy(() -> cached.get(JAVA_BYTE, 0))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> region.lease("test"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThatThrownBy(() -> memory.wake(KV)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> memory.sleep(KV)).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void closeGivesTheAddressesBack() {
        long bytes = 1L << 45;
        // more than an address space in sum
        for (int i = 0; i < 10; i++) {
            kvMemory(bytes).close();
        }
    }

    @Test
    void optionsWithoutASensibleCapacityAreRefused() {
        assertThatThrownBy(() -> MemoryOptions.of(Map.of()))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> MemoryOptions.of(Map.of(KV_CACHE, 0L)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("kv_cache is 0 bytes");
        assertThatThrownBy(() -> MemoryOptions.of(Map.of(KV_CACHE, Long.MAX_VALUE)))
                .isInstanceOf(IllegalArgumentException.class);
    }

    private static SleepableMemory kvMemory(long kvCacheBytes) {
        return SleepableMemory.reserve(
                MemoryOptions.of(Map.of(KV_CACHE, kvCacheBytes)), System::nanoTime);
    }

    private static SleepableMemory memory(long weightBytes, long kvCacheBytes) {
        return SleepableMemory.reserve(
                MemoryOptions.of(Map.of(WEIGHTS, weightBytes, KV_CACHE, kvCacheBytes)),
                System::nanoTime);
    }

    private static long countOf(byte value, MemorySegment segment) {
        return segment.elements(JAVA_BYTE).filter(e -> e.get(JAVA_BYTE, 0) == value).count();
    }

    private static MemorySegment filled(long bytes, byte value) {
        return MemorySegment.ofArray(new byte[Math.toIntExact(bytes)]).fill(value);
    }
}
