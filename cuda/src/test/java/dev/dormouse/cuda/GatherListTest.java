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

        assertThat(list.sources()).startsWith(0x10000 + 3072, 0x20000 + 16);
        assertThat(list.targets()).startsWith(0x40000, 0x40000 + 15360);
        assertThat(list.size()).isEqualTo(2);
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
    void manyBlocksAreAddedAtOnceOrNotAtAll() {
        assertThatThrownBy(() -> list.addChecked(2)).isInstanceOf(IllegalStateException.class);
        list.clear(1024);
        list.add(OTHER, 0, TARGET, 4096);
        list.addChecked(2);

        assertThat(list.size()).isEqualTo(3);
        assertThat(list.totalBytes()).isEqualTo(3 * 1024);
        assertThatThrownBy(() -> list.addChecked(GatherList.CAPACITY - 2))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("3 blocks and 4086 more, capacity=4088");
        list.addChecked(GatherList.CAPACITY - 3);
        assertThat(list.size()).isEqualTo(GatherList.CAPACITY);
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
}
