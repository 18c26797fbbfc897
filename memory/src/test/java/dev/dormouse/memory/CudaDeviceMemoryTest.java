package dev.dormouse.memory;

import static dev.dormouse.memory.MemoryTag.KV_CACHE;
import static dev.dormouse.memory.MemoryTag.WEIGHTS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cuda.AddressRange;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.MemoryAccess;
import dev.dormouse.cuda.PhysicalMemory;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.foreign.NativeLibraryException;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** On a real GPU, by the driver's own count; skipped where there is none. */
class CudaDeviceMemoryTest {
    private static final long MIB = 1L << 20;
    private static final long PIECE_BYTES = 6 * MIB;
    private static final long WEIGHT_BYTES = 300 * MIB;
    private static final long KV_BYTES = 64 * MIB;
    private static final Set<MemoryTag> ALL = EnumSet.allOf(MemoryTag.class);

    private CudaContext context;
    private DeviceMemory memory;

    @BeforeEach
    void reserve() {
        context = requiredContext();
        memory =
                DeviceMemory.reserve(
                        context,
                        Map.of(WEIGHTS, WEIGHT_BYTES, KV_CACHE, KV_BYTES),
                        PIECE_BYTES,
                        System::nanoTime);
    }

    @AfterEach
    void closeAll() {
        if (context != null) {
            memory.close();
            assertThat(context.liveObjects()).isZero();
            context.close();
        }
    }

    @Test
    void theDeviceHasItsMemoryBackWhenSleepReturnsAndAddressesStay() {
        memory.wake(ALL);
        long address = memory.address(KV_CACHE);
        memory.sleep(ALL, Retention.DISCARD);
        long before = freeBytes();
        for (int cycle = 0; cycle < 20; cycle++) {
            memory.wake(ALL);
            assertThat(before - freeBytes()).isEqualTo(WEIGHT_BYTES + KV_BYTES);
            memory.sleep(ALL, Retention.DISCARD);
            assertThat(freeBytes()).isEqualTo(before);
        }
        assertThat(memory.address(KV_CACHE)).isEqualTo(address);
    }

    @Test
    void everyByteThatWasKeptIsBackAcrossPieces() {
        memory.wake(ALL);
        byte[] written = random(1);
        write(memory.span(WEIGHTS), written);
        memory.sleep(ALL, Retention.KEEP_ON_HOST);
        assertThat(memory.backupBytes()).isEqualTo(WEIGHT_BYTES + KV_BYTES);
        memory.wake(Set.of(KV_CACHE));
        write(memory.span(KV_CACHE), new byte[(int) KV_BYTES]);
        memory.wake(Set.of(WEIGHTS));
        assertThat(read(memory.span(WEIGHTS))).isEqualTo(written);
        assertThat(memory.backupBytes()).isZero();
    }

    @Test
    void whoImportedThePiecesReadsTheOldBytesAndKeepsTheMemoryUntilItDropsThem() {
        memory.wake(Set.of(KV_CACHE));
        byte[] written = new byte[(int) KV_BYTES];
        new SplittableRandom(2).nextBytes(written);
        write(memory.span(KV_CACHE), written);
        long awake = freeBytes();
        try (AddressRange mapping = AddressRange.reserve(context, KV_BYTES)) {
            try (DeviceExport export = memory.export(KV_CACHE)) {
                long offset = 0;
                for (DeviceExport.Piece piece : export.pieces()) {
                    try (PhysicalMemory imported =
                            PhysicalMemory.importFrom(
                                    context, piece.fileDescriptor(), piece.lengthBytes())) {
                        mapping.map(offset, imported, MemoryAccess.READ_WRITE);
                        offset += piece.lengthBytes();
                    }
                }
            }
            memory.sleep(Set.of(KV_CACHE), Retention.DISCARD);
            assertThat(freeBytes()).isEqualTo(awake);
            assertThat(read(mapping.span(0, KV_BYTES))).isEqualTo(written);
            mapping.unmapAll();
            assertThat(freeBytes() - awake).isEqualTo(KV_BYTES);
        }
    }

    private long freeBytes() {
        return context.memoryInfo().freeBytes();
    }

    private static byte[] random(long seed) {
        byte[] bytes = new byte[(int) WEIGHT_BYTES];
        new SplittableRandom(seed).nextBytes(bytes);
        return bytes;
    }

    private void write(DeviceSpan target, byte[] bytes) {
        try (CudaStream stream = CudaStream.create(context);
                PinnedMemory host = PinnedMemory.allocate(context, bytes.length)) {
            MemorySegment.copy(bytes, 0, host.segment(), JAVA_BYTE, 0, bytes.length);
            stream.copyToDevice(host, 0, target);
            stream.synchronize();
        }
    }

    private byte[] read(DeviceSpan source) {
        try (CudaStream stream = CudaStream.create(context);
                PinnedMemory host = PinnedMemory.allocate(context, source.lengthBytes())) {
            stream.copyToHost(source, host, 0);
            stream.synchronize();
            return host.segment().toArray(JAVA_BYTE);
        }
    }

    private static CudaContext requiredContext() {
        try {
            CudaDriver driver = CudaDriver.load();
            if (driver.deviceCount() > 0) {
                return CudaContext.retain(driver.device(0));
            }
            return skip("the driver has no device");
        } catch (NativeLibraryException e) {
            return skip(e.toString());
        }
    }

    private static CudaContext skip(String reason) {
        if ("1".equals(System.getenv("DORMOUSE_REQUIRE_CUDA"))) {
            Assertions.fail(reason);
        }
        return Assumptions.abort(reason);
    }
}
