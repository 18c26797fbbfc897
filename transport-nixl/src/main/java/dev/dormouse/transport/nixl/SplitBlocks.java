package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.BlockList;
import dev.dormouse.nixl.MemoryType;
import dev.dormouse.nixl.RegisteredRange;
import dev.dormouse.transport.BlockRow;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Blocks of which some reach from one registered range into the next. NIXL moves only what lies in
 * one range, so such a block goes in parts, in a request that is made for them; all others are
 * prepared as they are.
 */
final class SplitBlocks {
    /**
     * The seams within the rows, which stand in a peer's bytes: far more than memory has pieces.
     */
    static final int MAX_SEAMS = 1 << 18;

    private final MemoryType type;
    private final List<BlockRow> rows;

    /** Of each row, the index of its first block; at last the number of all. */
    private final int[] firsts;

    /** By index, where in the block other ranges begin. */
    private final TreeMap<Integer, NavigableSet<Long>> cuts = new TreeMap<>();

    private int seamsWithin;

    private SplitBlocks(MemoryType type, List<BlockRow> rows) {
        this.type = type;
        this.rows = rows;
        firsts = new int[rows.size() + 1];
        for (int i = 0; i < rows.size(); i++) {
            firsts[i + 1] = Math.addExact(firsts[i], rows.get(i).count());
        }
    }

    /**
     * Blocks of some rows, all of one kind of memory.
     *
     * @param ranges what their owner has registered of it
     * @throws ArithmeticException if there are more than an index can count
     * @throws IllegalArgumentException if the ranges end within the rows too often
     */
    static SplitBlocks of(MemoryType type, List<BlockRow> rows, List<RegisteredRange> ranges) {
        SplitBlocks blocks = new SplitBlocks(type, List.copyOf(rows));
        if (ranges.size() > 1) {
            Map<Long, NavigableSet<Long>> seams = seams(ranges);
            for (int row = 0; row < rows.size(); row++) {
                NavigableSet<Long> ofDevice = seams.get((long) rows.get(row).deviceId());
                if (ofDevice != null) {
                    blocks.cut(row, ofDevice);
                }
            }
        }
        return blocks;
    }

    /** By device, the addresses at which one range ends and the next begins. */
    private static Map<Long, NavigableSet<Long>> seams(List<RegisteredRange> ranges) {
        Map<Long, Set<Long>> ends = new HashMap<>();
        for (RegisteredRange range : ranges) {
            ends.computeIfAbsent(range.deviceId(), _ -> new HashSet<>())
                    .add(range.address() + range.lengthBytes());
        }
        Map<Long, NavigableSet<Long>> seams = new HashMap<>();
        for (RegisteredRange range : ranges) {
            if (ends.getOrDefault(range.deviceId(), Set.of()).contains(range.address())) {
                seams.computeIfAbsent(range.deviceId(), _ -> new TreeSet<>()).add(range.address());
            }
        }
        return seams;
    }

    private void cut(int rowIndex, NavigableSet<Long> seams) {
        BlockRow row = rows.get(rowIndex);
        long end = row.address() + row.spanBytes();
        for (long seam : seams.subSet(row.address(), false, end, false)) {
            if (++seamsWithin > MAX_SEAMS) {
                throw new IllegalArgumentException(
                        "registered ranges end within the rows more than %d times"
                                .formatted(MAX_SEAMS));
            }
            long block = (seam - row.address()) / row.strideBytes();
            long offset = seam - row.address() - block * row.strideBytes();
            if (offset > 0 && offset < row.blockBytes()) {
                cuts.computeIfAbsent(firsts[rowIndex] + (int) block, index -> new TreeSet<>())
                        .add(offset);
            }
        }
    }

    /** Whether one of the blocks lies in more than one range. */
    boolean splits(int[] indices) {
        return !cuts.isEmpty() && Arrays.stream(indices).anyMatch(cuts::containsKey);
    }

    /**
     * What is to be prepared: all blocks at their index, but of one that is split the first part
     * only, to keep its place.
     */
    BlockList prepared() {
        BlockList.Builder builder = BlockList.builder(type);
        for (int i = 0; i < rows.size(); i++) {
            BlockRow row = rows.get(i);
            int next = 0;
            for (var cut : cuts.subMap(firsts[i], firsts[i + 1]).entrySet()) {
                int block = cut.getKey() - firsts[i];
                addWhole(builder, row, next, block);
                builder.add(
                        row.address() + block * row.strideBytes(),
                        cut.getValue().first(),
                        row.deviceId());
                next = block + 1;
            }
            addWhole(builder, row, next, row.count());
        }
        return builder.build();
    }

    private static void addWhole(BlockList.Builder builder, BlockRow row, int from, int end) {
        if (from < end) {
            builder.addStrided(
                    row.address() + from * row.strideBytes(),
                    row.strideBytes(),
                    row.blockBytes(),
                    end - from,
                    row.deviceId());
        }
    }

    /** Both sides of a transfer, part by part. */
    record Parts(BlockList local, BlockList remote) {}

    /**
     * The parts of pairs of blocks: each lies in one range on both sides.
     *
     * @throws IllegalArgumentException if the pairs are none, or their blocks do not exist or
     *     differ in length
     */
    static Parts parts(
            SplitBlocks local, int[] localIndices, SplitBlocks remote, int[] remoteIndices) {
        if (localIndices.length != remoteIndices.length) {
            throw new IllegalArgumentException(
                    "create transfer refused: local indices=%d, remote indices=%d must be equal"
                            .formatted(localIndices.length, remoteIndices.length));
        }
        BlockList.Builder ours = BlockList.builder(local.type);
        BlockList.Builder theirs = BlockList.builder(remote.type);
        for (int i = 0; i < localIndices.length; i++) {
            int localRow = local.rowOf(localIndices[i]);
            int remoteRow = remote.rowOf(remoteIndices[i]);
            BlockRow here = local.rows.get(localRow);
            BlockRow there = remote.rows.get(remoteRow);
            if (here.blockBytes() != there.blockBytes()) {
                throw new IllegalArgumentException(
                        "create transfer refused: lengths at position %d differ: local=%d remote=%d"
                                .formatted(i, here.blockBytes(), there.blockBytes()));
            }
            long from = local.address(localRow, localIndices[i]);
            long to = remote.address(remoteRow, remoteIndices[i]);
            NavigableSet<Long> ends = new TreeSet<>(local.cutsOf(localIndices[i]));
            ends.addAll(remote.cutsOf(remoteIndices[i]));
            ends.add(here.blockBytes());
            long start = 0;
            for (long end : ends) {
                ours.add(from + start, end - start, here.deviceId());
                theirs.add(to + start, end - start, there.deviceId());
                start = end;
            }
        }
        return new Parts(ours.build(), theirs.build());
    }

    private Set<Long> cutsOf(int index) {
        NavigableSet<Long> found = cuts.get(index);
        return found == null ? Set.of() : found;
    }

    private int rowOf(int index) {
        if (index < 0 || index >= firsts[rows.size()]) {
            throw new IllegalArgumentException(
                    "create transfer refused: index %d is not within 0 and %d"
                            .formatted(index, firsts[rows.size()] - 1));
        }
        int found = Arrays.binarySearch(firsts, index);
        return found >= 0 ? found : -found - 2;
    }

    private long address(int row, int index) {
        return rows.get(row).address() + (index - firsts[row]) * rows.get(row).strideBytes();
    }
}
