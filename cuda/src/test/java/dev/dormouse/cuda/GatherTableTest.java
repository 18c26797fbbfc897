package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class GatherTableTest {
    private static final DeviceSpan SOURCE = new DeviceSpan(0x10000, 4096);
    private static final DeviceSpan OTHER = new DeviceSpan(0x20000, 8192);
    private static final DeviceSpan TARGET = new DeviceSpan(0x40000, 16384);

    private final MemorySegment memory = MemorySegment.ofArray(new long[6]);
    private final GatherTable table = new GatherTable(memory);

    @Test
    void entriesAreAddressesOfAnySegment() {
        table.clear(1024);
        table.add(SOURCE, 3072, TARGET, 0);
        table.add(OTHER, 16, TARGET, 15360);

        assertThat(memory.asSlice(0, 32).toArray(JAVA_LONG))
                .containsExactly(0x10000 + 3072, 0x40000, 0x20000 + 16, 0x40000 + 15360);
        assertThat(table.size()).isEqualTo(2);
        assertThat(table.alignmentBytes()).isEqualTo(16);
    }

    @Test
    void aBlockThatLeavesItsSpanIsRefused() {
        table.clear(1024);

        for (long offset : new long[] {-1, 3073, Long.MAX_VALUE, Long.MIN_VALUE}) {
            assertThatThrownBy(() -> table.add(SOURCE, offset, TARGET, 0))
                    .isInstanceOf(IndexOutOfBoundsException.class)
                    .hasMessageContaining("source offsetBytes=" + offset);
        }
        assertThatThrownBy(() -> table.add(SOURCE, 0, TARGET, 16384))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessageContaining("target offsetBytes=16384");
        table.clear(4097);
        assertThatThrownBy(() -> table.add(SOURCE, 0, TARGET, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(table.size()).isZero();
    }

    @Test
    void theLeastAlignedAddressOrLengthDecides() {
        assertThat(alignment(1024, 0, 0)).isEqualTo(16);
        assertThat(alignment(1024, 4, 0)).isEqualTo(4);
        assertThat(alignment(1024, 0, 2)).isEqualTo(1);
        assertThat(alignment(1000, 0, 0)).isEqualTo(4);
        assertThat(alignment(1001, 0, 0)).isEqualTo(1);
    }

    @Test
    void clearingForgetsTheAlignment() {
        assertThat(alignment(1001, 1, 0)).isEqualTo(1);
        assertThat(alignment(1024, 0, 0)).isEqualTo(16);
    }

    @Test
    void manyBlocksAreAddedAtOnceOrNotAtAll() {
        long[] addresses = {0x10000, 0x40000, 0x20004, 0x40400, -1, -1};
        assertThatThrownBy(() -> table.addAll(addresses, 2))
                .isInstanceOf(IllegalStateException.class);
        table.clear(1024);
        table.add(OTHER, 0, TARGET, 4096);
        table.addAll(addresses, 2);

        assertThat(table.size()).isEqualTo(3);
        assertThat(memory.asSlice(16, 32).toArray(JAVA_LONG))
                .containsExactly(0x10000, 0x40000, 0x20004, 0x40400);
        assertThat(table.alignmentBytes()).isEqualTo(4);
        assertThatThrownBy(() -> table.addAll(addresses, 1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("capacity=3");
    }

    @Test
    void piecesCoverTheBlocks() {
        table.clear(4097);
        table.add(OTHER, 0, TARGET, 0);
        table.add(OTHER, 16, TARGET, 8192);

        assertThat(table.piecesPerBlock(4096)).isEqualTo(2);
        assertThat(table.pieces(4096)).isEqualTo(4);
        assertThat(table.pieces(8192)).isEqualTo(2);
    }

    @Test
    void moreThanOneLaunchCanTakeIsRefused() {
        table.clear(1L << 40);
        DeviceSpan huge = new DeviceSpan(1L << 41, 1L << 42);
        table.add(huge, 0, huge, 1L << 41);

        assertThat(table.pieces(4096)).isEqualTo(1 << 28);
        assertThatThrownBy(() -> table.pieces(128)).isInstanceOf(ArithmeticException.class);
        table.add(huge, 0, huge, 1L << 41);
        table.add(huge, 0, huge, 1L << 41);
        assertThatThrownBy(() -> table.pieces(1 << 10))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("use several");
    }

    @Test
    void aFullListAndOneWithoutLengthAreRefused() {
        assertThatThrownBy(() -> table.add(SOURCE, 0, TARGET, 0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("clear it first");
        table.clear(16);
        for (int i = 0; i < 3; i++) {
            table.add(SOURCE, 0, TARGET, 16L * i);
        }
        assertThatThrownBy(() -> table.add(SOURCE, 0, TARGET, 64))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("capacity=3");
        assertThatThrownBy(() -> table.clear(0)).isInstanceOf(IllegalArgumentException.class);
    }

    private int alignment(long blockBytes, long sourceOffset, long targetOffset) {
        table.clear(blockBytes);
        table.add(SOURCE, sourceOffset, TARGET, targetOffset);
        return table.alignmentBytes();
    }
}
