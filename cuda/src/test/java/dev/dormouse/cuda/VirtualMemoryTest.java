package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Addresses that stay while memory comes and goes; on the machine's GPU, or the stand-in. */
class VirtualMemoryTest {
    private final CudaContext context = CudaContext.retain(Gpu.any());
    private final long unit = PhysicalMemory.granularityBytes(context);
    private final CudaStream stream = CudaStream.create(context);
    private final PinnedMemory host = PinnedMemory.allocate(context, 4096);

    @AfterEach
    void nothingIsLeft() {
        host.close();
        stream.close();
        assertThat(context.liveObjects()).isZero();
        context.close();
    }

    @Test
    void bytesLiveInPiecesAndNotAtAddresses() {
        try (AddressRange range = AddressRange.reserve(context, 4 * unit);
                PhysicalMemory first = PhysicalMemory.allocate(context, unit);
                PhysicalMemory second = PhysicalMemory.allocate(context, unit)) {
            range.map(unit, first, MemoryAccess.READ_WRITE);
            stream.fill(range.span(unit, unit), (byte) 1);
            stream.synchronize();
            range.unmap(unit);

            range.map(unit, second, MemoryAccess.READ_WRITE);
            stream.fill(range.span(unit, unit), (byte) 2);
            stream.synchronize();
            range.unmap(unit);

            range.map(3 * unit, first, MemoryAccess.READ);
            range.map(unit, second, MemoryAccess.READ);
            assertThat(byteAt(range.span(3 * unit, 1))).isEqualTo((byte) 1);
            assertThat(byteAt(range.span(2 * unit - 1, 1))).isEqualTo((byte) 2);
            assertThat(range.mappedBytes()).isEqualTo(2 * unit);
        }
    }

    @Test
    void theDriverTellsEachPieceAndWhetherItCanBeRemapped() {
        try (AddressRange range = AddressRange.reserve(context, 4 * unit);
                PhysicalMemory first = PhysicalMemory.allocate(context, 3 * unit);
                PhysicalMemory second = PhysicalMemory.allocate(context, unit);
                DeviceBuffer buffer = DeviceBuffer.allocate(context, 100)) {
            range.map(0, first, MemoryAccess.READ_WRITE);
            range.map(3 * unit, second, MemoryAccess.READ_WRITE);

            assertThat(DeviceAllocation.behind(context, range.span(unit, 2 * unit + 5)))
                    .containsExactly(
                            new DeviceAllocation(range.span(unit, 2 * unit), true),
                            new DeviceAllocation(range.span(3 * unit, 5), true));
            assertThat(DeviceAllocation.behind(context, buffer.span()))
                    .noneMatch(DeviceAllocation::isRemappable);
        }
    }

    @Test
    void memoryGoesBackWhenNothingMapsIt() {
        long before = context.memoryInfo().freeBytes();
        AddressRange range = AddressRange.reserve(context, 64 * unit);
        PhysicalMemory memory = PhysicalMemory.allocate(context, 64 * unit);
        range.map(0, memory, MemoryAccess.READ_WRITE);
        memory.close();
        assertThat(before - context.memoryInfo().freeBytes()).isGreaterThanOrEqualTo(64 * unit);
        stream.fill(range.span(0, 64 * unit), (byte) 7);
        stream.synchronize();

        range.unmapAll();

        assertThat(context.memoryInfo().freeBytes()).isGreaterThan(before - 64 * unit);
        range.close();
        range.close();
    }

    @Test
    void anImportedPieceIsTheSameMemory() {
        try (AddressRange own = AddressRange.reserve(context, unit);
                AddressRange other = AddressRange.reserve(context, unit)) {
            int descriptor;
            try (PhysicalMemory memory = PhysicalMemory.allocate(context, unit)) {
                own.map(0, memory, MemoryAccess.READ_WRITE);
                descriptor = memory.export();
            }
            try (PhysicalMemory imported = PhysicalMemory.importFrom(context, descriptor, unit)) {
                Libc.close(descriptor);
                other.map(0, imported, MemoryAccess.READ);
            }
            stream.fill(own.span(0, unit), (byte) 9);
            stream.synchronize();
            assertThat(byteAt(other.span(unit - 1, 1))).isEqualTo((byte) 9);

            own.close();

            assertThat(byteAt(other.span(0, 1))).isEqualTo((byte) 9);
            assertThatThrownBy(() -> Libc.close(descriptor)).isInstanceOf(LibcException.class);
        }
    }

    @Test
    void whatIsNotADescriptorOfMemoryIsRefused() {
        assertThatThrownBy(() -> PhysicalMemory.importFrom(context, -1, unit))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> PhysicalMemory.importFrom(context, 0, unit / 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("positive multiples of " + unit);
        assertThatThrownBy(() -> PhysicalMemory.importFrom(context, 1 << 20, unit))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining(
                        "cuMemImportFromShareableHandle failed: fileDescriptor=1048576");
    }

    @Test
    void misuseIsRefusedAndChangesNothing() {
        try (AddressRange range = AddressRange.reserve(context, 2 * unit);
                PhysicalMemory memory = PhysicalMemory.allocate(context, unit)) {
            range.map(0, memory, MemoryAccess.READ_WRITE);

            assertThatThrownBy(() -> range.map(0, memory, MemoryAccess.READ))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> range.map(2 * unit, memory, MemoryAccess.READ))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> range.span(0, unit + 1))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> range.unmap(unit))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> range.allow(unit, 1, context.device(), MemoryAccess.READ))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> PhysicalMemory.allocate(context, unit + 1))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> AddressRange.reserve(context, unit / 2))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThat(range.mappedBytes()).isEqualTo(unit);
        }
    }

    @Test
    void closedObjectsAreRefused() {
        AddressRange range = AddressRange.reserve(context, unit);
        PhysicalMemory memory = PhysicalMemory.allocate(context, unit);
        memory.close();
        assertThatThrownBy(() -> range.map(0, memory, MemoryAccess.READ))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is closed");
        assertThatThrownBy(memory::export).isInstanceOf(IllegalStateException.class);
        range.close();
        assertThatThrownBy(() -> range.span(0, 1)).isInstanceOf(IllegalStateException.class);
        assertThat(range.isOpen()).isFalse();
    }

    @Test
    void aRequestThatIsTooLargeSaysHowMuchThereIs() {
        long tooMuch = Math.ceilDiv(2 * context.device().totalBytes(), unit) * unit;

        assertThatThrownBy(() -> PhysicalMemory.allocate(context, tooMuch))
                .isInstanceOfSatisfying(
                        CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue())
                .hasMessageContaining("cuMemCreate failed: lengthBytes=" + tooMuch)
                .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY")
                .hasMessageContaining("has free")
                .hasMessageContaining("ask for less");
    }

    @Test
    void aContextWithOpenObjectsStays() {
        CudaContext second = CudaContext.retain(Gpu.any());
        AddressRange range = AddressRange.reserve(second, unit);

        assertThatThrownBy(second::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("1 of its objects are open: address range");
        range.close();
        second.close();
        second.close();

        assertThatThrownBy(() -> AddressRange.reserve(second, unit))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is closed");
    }

    private byte byteAt(DeviceSpan span) {
        stream.copyToHost(span, host, 100);
        stream.synchronize();
        return host.segment().get(ValueLayout.JAVA_BYTE, 100);
    }
}
