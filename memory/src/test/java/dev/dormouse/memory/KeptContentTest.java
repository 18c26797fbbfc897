package dev.dormouse.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceBuffer;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.StandInDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** On the machine's GPU, or the stand-in. */
final class KeptContentTest {
    private static final StagingRing.Shape SHAPE = new StagingRing.Shape(64 << 10, 2);
    private static final int BYTES = 6 * (int) SHAPE.lengthBytes() + 12_345;

    private final byte[] content = new byte[BYTES];
    private CudaContext context;
    private CudaStream stream;
    private DeviceBuffer device;
    private PinnedMemory host;
    private StagingRing ring;

    @BeforeEach
    void allocate() {
        CudaDrivers.requireAny();
        context = CudaContext.retain(CudaDriver.load().device(0));
        stream = CudaStream.create(context);
        device = DeviceBuffer.allocate(context, BYTES);
        host = PinnedMemory.allocate(context, BYTES);
        ring = new StagingRing(context, SHAPE);
        new SplittableRandom(5).nextBytes(content);
        host.segment().copyFrom(MemorySegment.ofArray(content));
        stream.copyToDevice(host, 0, device.span());
        stream.synchronize();
    }

    @AfterEach
    void nothingIsLeft() {
        if (context != null) {
            ring.close();
            ring.close();
            host.close();
            device.close();
            stream.close();
            assertThat(context.liveObjects()).isZero();
            context.close();
        }
    }

    /** The last one is of a chunk that is longer than a huge page. */
    @ParameterizedTest
    @CsvSource({"4096, 1", "65536, 3", "3145728, 2"})
    void contentComesBackThroughRingsOfAnyShape(long slotBytes, int threads) {
        try (StagingRing other =
                        new StagingRing(context, new StagingRing.Shape(slotBytes, threads));
                KeptContent kept = KeptContent.of(other, device.span())) {
            assertThat(kept.lengthBytes()).isEqualTo(BYTES);
            restorePoisoned(kept);
        }
        assertThat(read()).isEqualTo(content);
    }

    @Test
    void nothingIsTakenOrOverwrittenBeforeTheDeviceIsDoneWithIt() {
        StandInDriver driver = CudaDrivers.standIn();
        driver.late(true);
        try (KeptContent kept = KeptContent.of(ring, device.span())) {
            restorePoisoned(kept);
        } finally {
            driver.late(false);
        }
        assertThat(read()).isEqualTo(content);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "cuMemcpyDtoHAsync_v2",
                "cuEventRecord",
                "cuEventSynchronize",
                "cuStreamSynchronize"
            })
    void whatIsNotKeptInFullLeavesNothingAndTheRingServesOn(String call) {
        StandInDriver driver = CudaDrivers.standIn();
        boolean once = call.equals("cuStreamSynchronize");
        for (int after : once ? new int[] {0} : new int[] {0, 1, 5, SHAPE.slots() + 1}) {
            driver.fail(call, after, StandInDriver.OUT_OF_MEMORY);

            assertThatThrownBy(() -> KeptContent.of(ring, device.span()))
                    .isInstanceOf(CudaException.class)
                    .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");

            assertThat(ProcSelf.hugeMappings()).isZero();
        }
        try (KeptContent kept = KeptContent.of(ring, device.span())) {
            restorePoisoned(kept);
        }
        assertThat(read()).isEqualTo(content);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "cuMemcpyHtoDAsync_v2",
                "cuEventRecord",
                "cuEventSynchronize",
                "cuStreamSynchronize"
            })
    void aRestoreThatFailsCanBeRepeated(String call) {
        StandInDriver driver = CudaDrivers.standIn();
        try (KeptContent kept = KeptContent.of(ring, device.span())) {
            boolean once = call.equals("cuStreamSynchronize");
            for (int after : once ? new int[] {0} : new int[] {0, 1, 5, SHAPE.slots() + 1}) {
                driver.fail(call, after, StandInDriver.OUT_OF_MEMORY);
                assertThatThrownBy(() -> kept.restore(device.span()))
                        .isInstanceOf(CudaException.class);
            }
            restorePoisoned(kept);
        }
        assertThat(read()).isEqualTo(content);
    }

    @Test
    void aCopyToTheHostEndsAfterItsLastChunkIsTaken() {
        Thread caller = Thread.currentThread();
        AtomicBoolean taken = new AtomicBoolean();

        ring.copyToHost(
                device.span(),
                (offset, staged) -> {
                    if (offset + staged.byteSize() == BYTES) {
                        Await.until("the caller waits", () -> isWaiting(caller));
                        taken.set(true);
                    }
                });

        assertThat(taken).isTrue();
    }

    @Test
    void aFailureInAWorkerIsToldWhenTheOthersHaveEnded() {
        Thread caller = Thread.currentThread();
        AtomicBoolean failed = new AtomicBoolean();
        AtomicBoolean ended = new AtomicBoolean();
        StagingRing.ChunkWork work =
                (offset, _) -> {
                    if (offset == 3 * SHAPE.slotBytes()) {
                        failed.set(true);
                        throw new IllegalStateException("as planned");
                    }
                    if (offset == 4 * SHAPE.slotBytes()) {
                        Await.until("the caller waits", () -> failed.get() && isWaiting(caller));
                        ended.set(true);
                    }
                };

        assertThatThrownBy(() -> ring.copyToHost(device.span(), work)).hasMessage("as planned");
        assertThat(ended.getAndSet(false)).isTrue();
        assertThatThrownBy(() -> ring.copyToDevice(work, device.span())).hasMessage("as planned");
        assertThat(ended).isTrue();

        ring.copyToHost(device.span(), (_, _) -> {});
    }

    private static boolean isWaiting(Thread thread) {
        return thread.getState() == Thread.State.WAITING;
    }

    @Test
    void aHostWithoutAddressesIsToldAsSuch() {
        DeviceSpan vast = new DeviceSpan(device.span().address(), 1L << 60);

        assertThatExceptionOfType(MemoryException.class)
                .isThrownBy(() -> KeptContent.of(ring, vast))
                .withMessageContaining("mmap")
                .withMessageContaining("free host memory");
    }

    @Test
    void closedContentIsNotReadAndHasNoMemory() {
        KeptContent kept = KeptContent.of(ring, device.span());
        assertThat(ProcSelf.hugeMappings()).isOne();
        kept.close();
        kept.close();

        assertThat(kept.lengthBytes()).isZero();
        assertThat(ProcSelf.hugeMappings()).isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> kept.restore(device.span()));
    }

    @Test
    void aRingThatIsNotMadeInFullLeavesNothing() {
        StandInDriver driver = CudaDrivers.standIn();
        for (String call : new String[] {"cuMemHostAlloc", "cuStreamCreate", "cuEventCreate"}) {
            long before = driver.live();
            int after = call.equals("cuEventCreate") ? SHAPE.slots() - 1 : 0;
            driver.fail(call, after, StandInDriver.OUT_OF_MEMORY);

            assertThatThrownBy(() -> new StagingRing(context, SHAPE))
                    .isInstanceOf(CudaException.class);

            assertThat(driver.live()).isEqualTo(before);
        }
    }

    @Test
    void aRingThatIsClosedHasNoThreads() {
        assertThat(workers()).isEqualTo(SHAPE.threads());
        ring.close();
        assertThat(workers()).isZero();
    }

    private static long workers() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("dormouse-staging-"))
                .count();
    }

    private void restorePoisoned(KeptContent kept) {
        stream.fill(device.span(), (byte) 0xee);
        stream.synchronize();
        kept.restore(device.span());
    }

    private byte[] read() {
        stream.copyToHost(device.span(), host, 0);
        stream.synchronize();
        return host.segment().toArray(ValueLayout.JAVA_BYTE);
    }
}
