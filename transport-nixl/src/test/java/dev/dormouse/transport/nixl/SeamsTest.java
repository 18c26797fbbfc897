package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.dormouse.nixl.MemoryType;
import dev.dormouse.nixl.RegisteredRange;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import java.util.Collections;
import java.util.List;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranges as a peer may tell them, by the hundred thousand. */
final class SeamsTest {
    private static final long ADDRESS = 1L << 32;
    private static final int COUNT = 200_000;
    private static final BlockRow ROW = new BlockRow(ADDRESS, COUNT, COUNT, 1, MemoryKind.DRAM, 7);

    private static List<RegisteredRange> ranges(LongFunction<RegisteredRange> range) {
        return LongStream.range(0, COUNT).mapToObj(range).toList();
    }

    private static boolean splits(List<BlockRow> rows, List<RegisteredRange> ranges) {
        return SplitBlocks.of(MemoryType.DRAM, rows, ranges).splits(new int[] {0});
    }

    @Test
    // a look at all ranges for each device takes minutes
    @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void rangesOfManyDevicesAreLookedAtOnce() {
        List<RegisteredRange> ranges = ranges(i -> new RegisteredRange(ADDRESS + i, 1, i));
        assertThat(splits(List.of(ROW), ranges)).isFalse();
    }

    @Test
    void rowsThatShareManySeamsAreRefused() {
        List<RegisteredRange> ranges = ranges(i -> new RegisteredRange(ADDRESS + i, 1, 7));
        assertThat(splits(List.of(ROW), ranges)).isTrue();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> splits(Collections.nCopies(2, ROW), ranges))
                .withMessageContaining("more than " + SplitBlocks.MAX_SEAMS + " times");
    }
}
