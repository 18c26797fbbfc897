package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** What goes into a launch, and spans of memory. */
class LaunchTest {
    @Test
    void argumentsAreLaidOutAsTheDriverReadsThem() {
        KernelArguments arguments =
                new KernelArguments()
                        .address(new DeviceSpan(0x1234_5678_9abcL, 1))
                        .int32(-7)
                        .int64(Long.MIN_VALUE)
                        .float32(1.5f);

        assertThat(arguments.sizes()).containsExactly(8, 4, 8, 4);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pointers = arguments.pointers(arena);
            assertThat(value(pointers, 0).get(JAVA_LONG, 0)).isEqualTo(0x1234_5678_9abcL);
            assertThat(value(pointers, 1).get(JAVA_INT, 0)).isEqualTo(-7);
            assertThat(value(pointers, 2).get(JAVA_LONG, 0)).isEqualTo(Long.MIN_VALUE);
            assertThat(value(pointers, 3).get(JAVA_FLOAT, 0)).isEqualTo(1.5f);
        }
    }

    @Test
    void structsStayWhereTheyAre() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(48);
            KernelArguments arguments = new KernelArguments().struct(struct).int32(7);

            assertThat(arguments.sizes()).containsExactly(48, 4);
            MemorySegment pointers = arguments.pointers(arena);
            assertThat(pointers.getAtIndex(ADDRESS, 0).address()).isEqualTo(struct.address());
            assertThat(value(pointers, 1).get(JAVA_INT, 0)).isEqualTo(7);
        }
        KernelArguments closed;
        try (Arena arena = Arena.ofConfined()) {
            closed = new KernelArguments().struct(arena.allocate(48));
        }
        try (Arena arena = Arena.ofConfined()) {
            assertThatThrownBy(() -> closed.pointers(arena))
                    .isInstanceOf(IllegalStateException.class);
        }
        MemorySegment heap = MemorySegment.ofArray(new byte[16]);
        assertThatThrownBy(() -> new KernelArguments().struct(heap))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void moreArgumentsThanFitAreRefused() {
        KernelArguments arguments = new KernelArguments();
        for (int i = 0; i < 64; i++) {
            arguments.int32(i);
        }
        assertThatThrownBy(() -> arguments.int32(64)).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void shapesThatNoDeviceRunsAreRefused() {
        assertThat(LaunchShape.of(3, 1024).threadsPerBlock()).isEqualTo(1024);
        for (Runnable shape :
                new Runnable[] {
                    () -> LaunchShape.of(0, 32),
                    () -> LaunchShape.of(1, 1025),
                    () -> new LaunchShape(1, 65_536, 1, 1, 1, 1),
                    () -> new LaunchShape(1, 1, 1, 1, 1, 65)
                }) {
            assertThatThrownBy(shape::run).isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void spansStayWithinThemselves() {
        DeviceSpan span = new DeviceSpan(1000, 100);

        assertThat(span.slice(20, 80)).isEqualTo(new DeviceSpan(1020, 80));
        assertThatThrownBy(() -> span.slice(20, 81)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> span.slice(-1, 5)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> new DeviceSpan(0, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> new DeviceSpan(1, Long.MAX_VALUE))
                .isInstanceOf(IllegalArgumentException.class);
    }

    private static MemorySegment value(MemorySegment pointers, int index) {
        return pointers.getAtIndex(ADDRESS, index).reinterpret(Long.BYTES);
    }
}
