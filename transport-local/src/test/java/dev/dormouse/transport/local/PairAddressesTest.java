package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PairAddressesTest {
    private final long[] sources = new long[32];
    private final long[] targets = new long[32];

    @Test
    void everyPairHasItsAddressesWhateverTheRows() {
        Seeded.forAll(
                300,
                random -> {
                    List<BlockRow> ours = rows(random, 1L << 40);
                    List<BlockRow> theirs = rows(random, 1L << 41);
                    int[] local = indices(random, count(ours));
                    int[] remote =
                            IntStream.of(local)
                                    .map(index -> partner(random, row(ours, index), theirs))
                                    .toArray();
                    for (boolean writes : new boolean[] {false, true}) {
                        assertThat(all(pairs(ours, local, theirs, remote), writes, random))
                                .isEqualTo(expected(ours, local, theirs, remote, writes));
                    }
                });
    }

    @Test
    void indicesThatChangedSinceTheyWereCheckedAreRefused() {
        List<BlockRow> rows = List.of(row(1 << 20, 16, 3), row(2 << 20, 32, 3));
        int[] local = {0, 1};
        int[] remote = {2, 1};
        BlockPairs pairs = pairs(rows, local, rows, remote);

        for (int index : new int[] {-1, 6, Integer.MAX_VALUE}) {
            local[1] = index;
            assertThatThrownBy(() -> new PairAddresses(pairs, false).fill(2, sources, targets))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("block %d does not exist", index);
        }
        local[1] = 3;
        assertThatThrownBy(() -> new PairAddresses(pairs, false).fill(2, sources, targets))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("block 1 has 16 bytes, not 32");
    }

    /** Source, target and length of each pair. */
    private List<List<Long>> all(BlockPairs pairs, boolean writes, SplittableRandom random) {
        List<List<Long>> all = new ArrayList<>();
        PairAddresses next = new PairAddresses(pairs, writes);
        while (next.hasNext()) {
            int most = 1 + random.nextInt(sources.length);
            int blocks = next.fill(most, sources, targets);
            assertThat(blocks).isBetween(1, most);
            for (int i = 0; i < blocks; i++) {
                all.add(List.of(sources[i], targets[i], next.blockBytes()));
            }
        }
        return all;
    }

    private static List<List<Long>> expected(
            List<BlockRow> ours, int[] local, List<BlockRow> theirs, int[] remote, boolean writes) {
        List<List<Long>> all = new ArrayList<>();
        for (int i = 0; i < local.length; i++) {
            long here = address(ours, local[i]);
            long there = address(theirs, remote[i]);
            long length = row(ours, local[i]).blockBytes();
            all.add(writes ? List.of(here, there, length) : List.of(there, here, length));
        }
        return all;
    }

    private static BlockPairs pairs(
            List<BlockRow> ours, int[] local, List<BlockRow> theirs, int[] remote) {
        return new BlockPairs(table(ours), local, table(theirs), remote);
    }

    private static BlockTable table(List<BlockRow> rows) {
        return new BlockTable(rows, rows.stream().mapToLong(BlockRow::address).toArray());
    }

    /** Of two lengths, both of which are there. */
    private static List<BlockRow> rows(SplittableRandom random, long base) {
        List<BlockRow> rows = new ArrayList<>();
        int count = 2 + random.nextInt(5);
        for (int i = 0; i < count; i++) {
            long length = i == 0 ? 16 : i == 1 ? 48 : random.nextBoolean() ? 16 : 48;
            long stride = length + random.nextInt(3) * 16L;
            int blocks = 1 + random.nextInt(9);
            rows.add(
                    new BlockRow(
                            base + ((long) i << 20), length, stride, blocks, MemoryKind.VRAM, 0));
        }
        return rows;
    }

    private static BlockRow row(long address, long length, int blocks) {
        return new BlockRow(address, length, length, blocks, MemoryKind.VRAM, 0);
    }

    private static int[] indices(SplittableRandom random, int count) {
        return random.ints(1 + random.nextInt(100), 0, count).toArray();
    }

    private static int partner(SplittableRandom random, BlockRow ours, List<BlockRow> theirs) {
        int[] fitting =
                IntStream.range(0, count(theirs))
                        .filter(i -> row(theirs, i).blockBytes() == ours.blockBytes())
                        .toArray();
        return fitting[random.nextInt(fitting.length)];
    }

    private static int count(List<BlockRow> rows) {
        return rows.stream().mapToInt(BlockRow::count).sum();
    }

    private static BlockRow row(List<BlockRow> rows, int index) {
        int left = index;
        for (BlockRow row : rows) {
            if (left < row.count()) {
                return row;
            }
            left -= row.count();
        }
        throw new AssertionError("no block " + index);
    }

    private static long address(List<BlockRow> rows, int index) {
        int left = index;
        for (BlockRow row : rows) {
            if (left < row.count()) {
                return row.address() + left * row.strideBytes();
            }
            left -= row.count();
        }
        throw new AssertionError("no block " + index);
    }
}
