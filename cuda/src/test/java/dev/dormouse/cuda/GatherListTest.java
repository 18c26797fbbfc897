package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GatherListTest {
    private static final DeviceSpan SOURCE = new DeviceSpan(0x10000, 4096);
    private static final DeviceSpan OTHER = new DeviceSpan(0x20000, 8192);
    private static final DeviceSpan TARGET = new DeviceSpan(0x40000, 16384);

    private final GatherList list = new GatherList();

    @AfterEach
    void closingTwiceIsFine() {
        list.close();
        list.close();
    }

    @Test
    void entriesAreAddressesOfAnySegment() {
        list.clear(1024);
        list.add(SOURCE, 3072, TARGET, 0);
        list.add(OTHER, 16, TARGET, 15360);

        assertThat(GatherPlacesTest.addresses(list.places(0)))
                .containsExactly(0x10000 + 3072, 0x40000, 0x20000 + 16, 0x40000 + 15360);
        assertThat(list.size()).isEqualTo(2);
        assertThat(list.alignmentBytes()).isEqualTo(16);
    }

    @Test
    void aBlockThatLeavesItsSpanIsRefused() {
        list.clear(1024);

        for (long offset : new long[] {-1, 3073, Long.MAX_VALUE, Long.MIN_VALUE}) {
            assertThatThrownBy(() -> list.add(SOURCE, offset, TARGET, 0))
                    .isInstanceOf(IndexOutOfBoundsException.class)
                    .hasMessageContaining("source offsetBytes=" + offset);
        }
        assertThatThrownBy(() -> list.add(SOURCE, 0, TARGET, 16384))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessageContaining("target offsetBytes=16384");
        list.clear(4097);
        assertThatThrownBy(() -> list.add(SOURCE, 0, TARGET, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(list.size()).isZero();
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
        assertThatThrownBy(() -> list.addChecked(addresses, 2))
                .isInstanceOf(IllegalStateException.class);
        list.clear(1024);
        list.add(OTHER, 0, TARGET, 4096);
        list.addChecked(addresses, 2);

        assertThat(list.size()).isEqualTo(3);
        assertThat(GatherPlacesTest.addresses(list.places(1)))
                .containsExactly(0x10000, 0x40000, 0x20004, 0x40400);
        assertThat(list.alignmentBytes()).isEqualTo(4);
        long[] many = new long[2 * GatherList.CAPACITY];
        assertThatThrownBy(() -> list.addChecked(many, GatherList.CAPACITY - 2))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("3 blocks and 4086 more, capacity=4088");
        list.addChecked(many, GatherList.CAPACITY - 3);
        assertThat(list.size()).isEqualTo(GatherList.CAPACITY);
    }

    @Test
    void piecesCoverTheBlocks() {
        list.clear(4097);
        list.add(OTHER, 0, TARGET, 0);
        list.add(OTHER, 16, TARGET, 8192);

        assertThat(list.piecesPerBlock(4096)).isEqualTo(2);
        assertThat(list.piecesPerBlock(8192)).isEqualTo(1);
    }

    @Test
    void moreThanOneLaunchCanTakeIsRefused() {
        list.clear(1L << 40);
        DeviceSpan huge = new DeviceSpan(1L << 41, 1L << 42);
        list.add(huge, 0, huge, 1L << 41);

        list.requireCountable(1 << 10);
        assertThatThrownBy(() -> list.requireCountable(128))
                .isInstanceOf(ArithmeticException.class);
        list.add(huge, 0, huge, 1L << 41);
        list.add(huge, 0, huge, 1L << 41);
        assertThatThrownBy(() -> list.requireCountable(1 << 10))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("use several");
    }

    @Test
    void aFullListAndOneWithoutLengthAreRefused() {
        assertThatThrownBy(() -> list.add(SOURCE, 0, TARGET, 0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("clear it first");
        list.clear(16);
        for (int i = 0; i < GatherList.CAPACITY; i++) {
            list.add(SOURCE, 0, TARGET, 16L * (i % 1024));
        }
        assertThatThrownBy(() -> list.add(SOURCE, 0, TARGET, 64))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("capacity=4088");
        assertThatThrownBy(() -> list.clear(0)).isInstanceOf(IllegalArgumentException.class);
    }

    private int alignment(long blockBytes, long sourceOffset, long targetOffset) {
        list.clear(blockBytes);
        list.add(SOURCE, sourceOffset, TARGET, targetOffset);
        return list.alignmentBytes();
    }
}
