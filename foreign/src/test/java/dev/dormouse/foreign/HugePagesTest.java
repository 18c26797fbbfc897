package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class HugePagesTest {
    @Test
    void memoryBeginsWithAHugePageAndHoldsWhatIsWritten() {
        try (HugePages pages = HugePages.map(HugePages.PAGE_BYTES + 1)) {
            MemorySegment memory = pages.segment();

            assertThat(memory.byteSize()).isEqualTo(HugePages.PAGE_BYTES + 1);
            assertThat(memory.address() % HugePages.PAGE_BYTES).isZero();
            assertThat(memory.get(JAVA_BYTE, HugePages.PAGE_BYTES)).isZero();
            memory.set(JAVA_BYTE, HugePages.PAGE_BYTES, (byte) 7);
            assertThat(memory.get(JAVA_BYTE, HugePages.PAGE_BYTES)).isEqualTo((byte) 7);
        }
    }

    @Test
    void nothingIsMappedAfterTheEndAndASecondEndIsFine() throws IOException {
        HugePages pages = HugePages.map(64 << 20);
        long address = pages.segment().address() + (32 << 20);
        assertThat(isMapped(address)).isTrue();

        pages.close();
        assertThat(isMapped(address)).isFalse();
        pages.close();
    }

    @Test
    void moreThanThereAreAddressesIsRefused() {
        assertThatThrownBy(() -> HugePages.map(1L << 60))
                .isInstanceOf(LibcException.class)
                .hasMessageContaining("ENOMEM");
    }

    private static boolean isMapped(long address) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).stream()
                .map(line -> line.split("[ -]", 3))
                .anyMatch(
                        ends ->
                                Long.parseUnsignedLong(ends[0], 16) <= address
                                        && Long.parseUnsignedLong(ends[1], 16) > address);
    }
}
