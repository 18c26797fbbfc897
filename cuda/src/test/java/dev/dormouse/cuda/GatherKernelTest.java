package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * That each block arrives and nothing else changes. On the machine's GPU; the stand-in shows that
 * the launch is as the kernel wants it.
 */
class GatherKernelTest {
    private static final int BYTES = 8 << 20;
    private static final long[] BLOCK_BYTES = {
        1, 3, 4, 16, 48, 511, 512, 4092, 4096, 4112, 6144, 16384, 65536, 100_000, 1 << 20
    };

    @TempDir private static Path folder;

    private final CudaContext context = CudaContext.retain(Gpu.any());
    private final KernelCache cache = new KernelCache(folder, NvrtcNative.required());
    private final CudaStream stream = CudaStream.create(context);
    private final PinnedMemory host = PinnedMemory.allocate(context, BYTES);
    private final DeviceBuffer sources = DeviceBuffer.allocate(context, BYTES);
    private final DeviceBuffer target = DeviceBuffer.allocate(context, BYTES);
    private final GatherList list = new GatherList();
    private final byte[] sourceBytes = new byte[BYTES];

    GatherKernelTest() {
        new Random(3).nextBytes(sourceBytes);
        host.segment().copyFrom(MemorySegment.ofArray(sourceBytes));
        stream.copyToDevice(host, 0, sources.span());
        stream.synchronize();
    }

    @AfterEach
    void nothingIsLeft() {
        list.close();
        list.close();
        target.close();
        sources.close();
        host.close();
        stream.close();
        assertThat(context.liveObjects()).isZero();
        context.close();
    }

    @Test
    void everyBlockArrivesAndNothingElseChanges() {
        try (GatherKernel kernel = GatherKernel.load(context, cache)) {
            for (long blockBytes : BLOCK_BYTES) {
                Random random = new Random(blockBytes);
                for (int alignment : new int[] {16, 4, 1}) {
                    gatherAndCompare(kernel, random, blockBytes, alignment);
                }
            }
        }
    }

    @Test
    void aListIsFilledAgainWhileItsLaunchIsQueued() {
        try (GatherKernel kernel = GatherKernel.load(context, cache)) {
            list.clear(4096);
            assertThatThrownBy(() -> kernel.copy(stream, list))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("empty");
            for (int i = 0; i < 1000; i++) {
                list.clear(4096);
                list.add(sources.span(), 4096L * i, target.span(), 4096L * (999 - i));
                assertThat(list.totalBytes()).isEqualTo(4096);
                kernel.copy(stream, list);
            }
            stream.copyToHost(target.span(), host, 0);
            stream.synchronize();

            for (int i = 0; i < 1000; i++) {
                assertThat(host.segment().asSlice(4096L * (999 - i), 4096).toArray(JAVA_BYTE))
                        .isEqualTo(Arrays.copyOfRange(sourceBytes, 4096 * i, 4096 * (i + 1)));
            }
        }
    }

    @Test
    void aClosedListIsRefused() {
        GatherList closed = new GatherList();
        closed.clear(4096);
        closed.add(sources.span(), 0, target.span(), 0);
        closed.close();
        try (GatherKernel kernel = GatherKernel.load(context, cache)) {
            assertThatThrownBy(() -> kernel.copy(stream, closed))
                    .isInstanceOf(IllegalStateException.class);
        }
    }

    /** Odd addresses, more than 2^31 bytes apart, so that no launch has blocks of both places. */
    @Test
    void blocksThatLieFarApartArriveToo() {
        long far = 3L << 30;
        try (GatherKernel kernel = GatherKernel.load(context, cache);
                AddressRange range = AddressRange.reserve(context, far + BYTES);
                PhysicalMemory first = PhysicalMemory.allocate(context, BYTES);
                PhysicalMemory second = PhysicalMemory.allocate(context, BYTES)) {
            range.map(0, first, MemoryAccess.READ_WRITE);
            range.map(far, second, MemoryAccess.READ_WRITE);
            stream.copyToDevice(host, 0, range.span(0, BYTES));
            stream.copyToDevice(host, 0, range.span(far, BYTES));
            stream.fill(target.span(), (byte) 0);

            int blocks = 40;
            list.clear(1000);
            for (int i = 0; i < blocks; i++) {
                DeviceSpan source = range.span(i % 3 == 0 ? 0 : far, BYTES);
                list.add(source, 1 + 2000L * i, target.span(), 1024L * (blocks - i));
            }
            kernel.copy(stream, list);
            stream.copyToHost(target.span(), host, 0);
            stream.synchronize();

            byte[] expected = new byte[BYTES];
            for (int i = 0; i < blocks; i++) {
                System.arraycopy(sourceBytes, 1 + 2000 * i, expected, 1024 * (blocks - i), 1000);
            }
            assertThat(MemorySegment.ofArray(expected).mismatch(host.segment())).isEqualTo(-1);
        }
    }

    @Test
    void blocksComeFromAnotherDevice() {
        List<CudaDevice> pair = Gpu.requiredPair();
        try (CudaContext far = CudaContext.retain(pair.get(1));
                GatherKernel kernel = GatherKernel.load(context, cache);
                CudaStream farStream = CudaStream.create(far);
                AddressRange range = AddressRange.reserve(far, 8L << 20);
                PhysicalMemory memory = PhysicalMemory.allocate(far, 8L << 20)) {
            range.map(0, memory, MemoryAccess.READ_WRITE);
            farStream.copyToDevice(host, 0, range.span(0, BYTES));
            farStream.synchronize();
            range.allow(0, BYTES, context.device(), MemoryAccess.READ);

            list.clear(65536);
            for (int i = 0; i < 128; i++) {
                list.add(range.span(0, BYTES), i * 65536L, target.span(), (127 - i) * 65536L);
            }
            kernel.copy(stream, list);
            stream.copyToHost(target.span(), host, 0);
            stream.synchronize();

            for (int i = 0; i < 128; i++) {
                assertThat(
                                MemorySegment.ofArray(sourceBytes)
                                        .asSlice(i * 65536L, 65536)
                                        .mismatch(
                                                host.segment().asSlice((127 - i) * 65536L, 65536)))
                        .isEqualTo(-1);
            }
        }
    }

    /** Random blocks of three source spans to places that do not overlap, with gaps between. */
    private void gatherAndCompare(
            GatherKernel kernel, Random random, long blockBytes, int alignment) {
        long stride = Math.ceilDiv(blockBytes + 16, 16) * 16;
        List<Long> places = new ArrayList<>();
        for (long place = 0;
                place + stride + 16 <= BYTES && places.size() < GatherList.CAPACITY;
                place += stride) {
            places.add(place + (alignment == 16 ? 0 : 3L * alignment));
        }
        Collections.shuffle(places, random);
        List<Long> chosen = places.subList(0, 1 + random.nextInt(places.size()));
        byte[] expected = new byte[BYTES];
        Arrays.fill(expected, (byte) 0xa5);
        stream.fill(target.span(), (byte) 0xa5);

        list.clear(blockBytes);
        long quarter = BYTES / 4L;
        for (long place : chosen) {
            long start = random.nextInt(3) * quarter;
            DeviceSpan span = sources.span().slice(start, 2 * quarter);
            long room = (span.lengthBytes() - blockBytes) / alignment + 1;
            long offset = random.nextLong(room) * alignment;
            list.add(span, offset, target.span(), place);
            System.arraycopy(
                    sourceBytes,
                    Math.toIntExact(start + offset),
                    expected,
                    Math.toIntExact(place),
                    Math.toIntExact(blockBytes));
        }
        kernel.copy(stream, list);
        stream.copyToHost(target.span(), host, 0);
        stream.synchronize();

        assertThat(MemorySegment.ofArray(expected).mismatch(host.segment()))
                .as("blockBytes=%d alignment=%d", blockBytes, alignment)
                .isEqualTo(-1);
    }
}
