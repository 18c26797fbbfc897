package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class LibcTest {
    private static final int READ_WRITE = Libc.PROT_READ | Libc.PROT_WRITE;
    private static final long PAGE = Libc.pageSizeBytes();

    @Test
    void twoMappingsOfAMemoryFileShowTheSameBytes() {
        int fd = Libc.createMemoryFile("libc-test", Libc.MFD_CLOEXEC);
        Libc.truncate(fd, 2 * PAGE);
        MemorySegment one = Libc.map(2 * PAGE, READ_WRITE, Libc.MAP_SHARED, fd, 0);
        MemorySegment secondPage = Libc.map(PAGE, Libc.PROT_READ, Libc.MAP_SHARED, fd, PAGE);

        one.set(JAVA_BYTE, PAGE + 5, (byte) 42);

        assertThat(secondPage.get(JAVA_BYTE, 5)).isEqualTo((byte) 42);
        Libc.unmap(one);
        Libc.unmap(secondPage);
        Libc.close(fd);
    }

    @Test
    void mapOverKeepsTheAddressAndReplacesThePages() {
        MemorySegment range = Libc.reserve(4 * PAGE);
        int flags = Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS;
        Libc.mapOver(range, READ_WRITE, flags, -1, 0);
        range.fill((byte) 7);

        Libc.mapOver(range, READ_WRITE, flags, -1, 0);

        assertThat(range.get(JAVA_BYTE, 3 * PAGE)).isZero();
        Libc.unmap(range);
    }

    @Test
    void droppedPagesReadAsZeros() {
        MemorySegment range =
                Libc.map(PAGE, READ_WRITE, Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS, -1, 0);
        range.fill((byte) 7);

        Libc.advise(range, Libc.MADV_DONTNEED);

        assertThat(range.get(JAVA_BYTE, 0)).isZero();
        Libc.unmap(range);
    }

    @Test
    void punchedHolesGiveBlocksBackAndKeepTheLength() throws IOException {
        int fd = Libc.createMemoryFile("libc-test", Libc.MFD_CLOEXEC);
        Libc.allocate(fd, 0, 0, 8 * PAGE);
        MemorySegment range = Libc.map(8 * PAGE, READ_WRITE, Libc.MAP_SHARED, fd, 0);
        range.fill((byte) 7);

        Libc.allocate(fd, Libc.FALLOC_FL_PUNCH_HOLE | Libc.FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE);

        assertThat(range.get(JAVA_BYTE, PAGE - 1)).isEqualTo((byte) 7);
        assertThat(range.get(JAVA_BYTE, PAGE)).isZero();
        assertThat(range.get(JAVA_BYTE, 3 * PAGE - 1)).isZero();
        assertThat(range.get(JAVA_BYTE, 3 * PAGE)).isEqualTo((byte) 7);
        assertThat(Files.size(Path.of("/proc/self/fd/" + fd))).isEqualTo(8 * PAGE);
        Libc.unmap(range);
        Libc.close(fd);
    }

    @Test
    void adviceThatTheKernelDoesNotKnowIsNoFailure() {
        MemorySegment range =
                Libc.map(PAGE, READ_WRITE, Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS, -1, 0);

        assertThat(Libc.adviseIfKnown(range, Libc.MADV_DONTNEED)).isTrue();
        assertThat(Libc.adviseIfKnown(range, 9999)).isFalse();
        Libc.unmap(range);
        assertThatThrownBy(() -> Libc.adviseIfKnown(range, Libc.MADV_DONTNEED))
                .hasMessageContaining("ENOMEM");
    }

    @Test
    void failuresNameTheCallTheValuesAndTheError() {
        assertThatThrownBy(() -> Libc.close(123_456))
                .isInstanceOfSatisfying(
                        LibcException.class,
                        e -> {
                            assertThat(e.operation()).isEqualTo("close");
                            assertThat(e.errnoName()).isEqualTo("EBADF");
                            assertThat(e.errno()).isEqualTo(9);
                        })
                .hasMessage("close failed: fd=123456: EBADF");
        assertThatThrownBy(() -> Libc.truncate(-1, PAGE)).hasMessageContaining("EBADF");
        assertThatThrownBy(() -> Libc.allocate(-1, 0, 0, PAGE)).hasMessageContaining("EBADF");
        assertThatThrownBy(() -> Libc.map(0, READ_WRITE, Libc.MAP_PRIVATE, -1, 0))
                .hasMessageContaining("mmap failed: address=0x0 lengthBytes=0");
        assertThatThrownBy(() -> Libc.createMemoryFile("x".repeat(300), 0))
                .hasMessageContaining("EINVAL");
        assertThatThrownBy(() -> Libc.setEnvironmentIfAbsent("A=B", "c"))
                .hasMessageContaining("EINVAL");
        MemorySegment odd = MemorySegment.ofAddress(1).reinterpret(PAGE);
        assertThatThrownBy(() -> Libc.unmap(odd)).hasMessageContaining("EINVAL");
        assertThatThrownBy(() -> Libc.advise(odd, Libc.MADV_DONTNEED))
                .hasMessageContaining("EINVAL");
    }

    @Test
    void environmentIsSetOnlyWhenAbsent() {
        String name = "DORMOUSE_LIBC_TEST";
        assertThat(Libc.setEnvironmentIfAbsent(name, "first")).isTrue();
        assertThat(Libc.setEnvironmentIfAbsent(name, "second")).isFalse();
        assertThat(Libc.setEnvironmentIfAbsent("PATH", "nowhere")).isFalse();
    }

    @Test
    void limitsAndPageSizeArePlausible() {
        ResourceLimit limit = Libc.lockedMemoryLimit();
        assertThat(limit.soft()).isNotNegative().isLessThanOrEqualTo(limit.hard());
        assertThat(Long.bitCount(PAGE)).isEqualTo(1);
        assertThat(PAGE).isGreaterThanOrEqualTo(4096);
        Libc.trimHeap();
    }

    @Test
    void heapSegmentsAreRefused() {
        MemorySegment heap = MemorySegment.ofArray(new byte[16]);
        assertThatThrownBy(() -> Libc.unmap(heap)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Libc.advise(heap, Libc.MADV_DONTNEED))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Libc.mapOver(heap, READ_WRITE, Libc.MAP_PRIVATE, -1, 0))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void theSegmentationFaultHandlerBelongsToTheJvm() {
        assertThat(Libc.signalHandler(11)).isNotIn(0L, 1L);
        assertThatThrownBy(() -> Libc.signalHandler(9999))
                .hasMessage("sigaction failed: signal=9999: EINVAL");
    }
}
