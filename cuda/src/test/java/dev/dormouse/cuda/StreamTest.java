package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Copies, events and memory of fixed size; on the machine's GPU, or the stand-in. */
class StreamTest {
    private static final int BYTES = 1 << 20;

    private final CudaContext context = CudaContext.retain(Gpu.any());
    private final CudaStream stream = CudaStream.create(context);
    private final PinnedMemory host = PinnedMemory.allocate(context, BYTES);
    private final DeviceBuffer buffer = DeviceBuffer.allocate(context, 2L * BYTES);
    private final DeviceSpan left = buffer.span().slice(0, BYTES);
    private final DeviceSpan right = buffer.span().slice(BYTES, BYTES);

    @AfterEach
    void nothingIsLeft() {
        buffer.close();
        host.close();
        stream.close();
        assertThat(context.liveObjects()).isZero();
        context.close();
    }

    @Test
    void bytesGoThereAndBack() {
        byte[] bytes = new byte[BYTES];
        new Random(7).nextBytes(bytes);
        host.segment().copyFrom(MemorySegment.ofArray(bytes));

        stream.copyToDevice(host, 0, left);
        stream.copy(left, right);
        stream.fill(left, (byte) 0);
        stream.fill(right.slice(5, 3), (byte) 0xee);
        stream.copyBetween(context, right, context, left);
        stream.synchronize();
        host.segment().fill((byte) 0);
        stream.copyToHost(left.slice(1, BYTES - 1), host, 1);
        stream.synchronize();

        bytes[0] = 0;
        bytes[5] = bytes[6] = bytes[7] = (byte) 0xee;
        assertThat(host.segment().toArray(JAVA_BYTE)).isEqualTo(bytes);
        assertThat(stream.isIdle()).isTrue();
    }

    @Test
    void anotherStreamWaitsForAnEvent() {
        try (CudaStream second = CudaStream.create(context);
                CudaEvent start = CudaEvent.timed(context);
                CudaEvent done = CudaEvent.timed(context)) {
            assertThat(done.hasPassed()).isTrue();
            stream.record(start);
            for (int i = 0; i < 100; i++) {
                stream.fill(left, (byte) i);
            }
            stream.record(done);
            second.waitFor(done);
            second.copyToHost(left, host, 0);
            second.synchronize();

            assertThat(host.segment().get(JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 99);
            done.await();
            assertThat(done.hasPassed()).isTrue();
            assertThat(done.millisSince(start)).isPositive();
        }
    }

    @Test
    void copiesStayInTheirMemory() {
        assertThatThrownBy(() -> stream.copyToDevice(host, 1, left))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> stream.copyToHost(left, host, -1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> stream.copy(left, right.slice(0, 5)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("differ in length");
    }

    @Test
    void closedObjectsAreRefused() {
        CudaStream second = CudaStream.create(context);
        CudaEvent event = CudaEvent.create(context);
        PinnedMemory pinned = PinnedMemory.allocate(context, 16);
        MemorySegment segment = pinned.segment();
        pinned.close();
        event.close();
        assertThatThrownBy(() -> segment.get(JAVA_BYTE, 0))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> second.copyToHost(left.slice(0, 16), pinned, 0))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> second.record(event)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> second.waitFor(event)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(event::hasPassed).isInstanceOf(IllegalStateException.class);
        second.close();
        second.close();
        assertThatThrownBy(second::synchronize).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> second.fill(left, (byte) 1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("fill refused: stream");
    }

    @Test
    void theDeviceTellsWhatItIs() {
        CudaDevice device = context.device();

        assertThat(device.name()).isNotBlank();
        assertThat(context.memoryInfo().totalBytes())
                .isBetween(device.totalBytes() / 100 * 90, device.totalBytes() / 100 * 110);
        assertThat(device.computeCapability()).isGreaterThan(new ComputeCapability(3, 0));
        assertThat(device.hasVirtualMemory()).isTrue();
        assertThat(CudaDriver.load().devices()).contains(device);
        assertThat(CudaDriver.load().version()).isGreaterThanOrEqualTo(12040);
        assertThatThrownBy(() -> CudaDriver.load().device(1000))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("cuDeviceGet failed: ordinal=1000")
                .hasMessageContaining("CUDA_ERROR_INVALID_DEVICE")
                .hasMessageContaining("CUDA_VISIBLE_DEVICES");
    }
}
