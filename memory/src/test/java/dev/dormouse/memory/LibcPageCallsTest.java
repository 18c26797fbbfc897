package dev.dormouse.memory;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class LibcPageCallsTest {
    private static final long MIB = 1L << 20;

    private final LibcPageCalls calls = new LibcPageCalls();

    @Test
    void allocatedPagesAreThereBeforeAnythingTouchesThem() throws Exception {
        int file = calls.createFile("dormouse-test");
        try {
            calls.allocate(file, 0, 2 * MIB);
            calls.allocate(file, 2 * MIB, MIB);

            assertThat(blocksOf(file)).isEqualTo(3 * MIB / 512);
        } finally {
            calls.closeFile(file);
        }
    }

    @Test
    void pagesAreTouchedOneByOneWhereTheKernelCannotPopulate() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pages = arena.allocate(3 * 4096).fill((byte) 42);

            LibcPageCalls.touchEachPage(pages, 4096);

            for (int page = 0; page < 3; page++) {
                assertThat(pages.get(JAVA_BYTE, page * 4096L)).isZero();
                assertThat(pages.get(JAVA_BYTE, page * 4096L + 1)).isEqualTo((byte) 42);
            }
        }
    }

    /** Java has no view of a file's blocks of 512 bytes. */
    private static long blocksOf(int file) throws IOException, InterruptedException {
        String path = "/proc/%d/fd/%d".formatted(ProcessHandle.current().pid(), file);
        Process stat = new ProcessBuilder("stat", "-Lc", "%b", path).start();
        String output = new String(stat.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        assertThat(stat.waitFor()).isZero();
        return Long.parseLong(output.strip());
    }
}
