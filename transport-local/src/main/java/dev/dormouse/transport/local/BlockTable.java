package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockRow;
import java.util.Arrays;
import java.util.List;

/**
 * Blocks by index: the blocks of all rows, one row behind the other. Kept as rows, since a peer may
 * tell rows of any count.
 */
final class BlockTable {
    private final long[] addresses;
    private final long[] blockBytes;
    private final long[] strideBytes;

    /** Where each row's indices end. */
    private final int[] ends;

    /** The length of all blocks, or 0 if there are several. */
    private final long commonBlockBytes;

    /**
     * Blocks of rows.
     *
     * @param addresses where each row starts here
     * @throws ArithmeticException if there are more than an int can count
     */
    BlockTable(List<BlockRow> rows, long[] addresses) {
        this.addresses = addresses.clone();
        blockBytes = rows.stream().mapToLong(BlockRow::blockBytes).toArray();
        strideBytes = rows.stream().mapToLong(BlockRow::strideBytes).toArray();
        ends = new int[rows.size()];
        int end = 0;
        for (int row = 0; row < ends.length; row++) {
            end = Math.addExact(end, rows.get(row).count());
            ends[row] = end;
        }
        commonBlockBytes =
                Arrays.stream(blockBytes).allMatch(length -> length == blockBytes[0])
                        ? blockBytes[0]
                        : 0;
    }

    int size() {
        return ends[ends.length - 1];
    }

    /**
     * The row that has a block.
     *
     * @param guess where to look first
     */
    int row(int index, int guess) {
        if (index < ends[guess] && index >= first(guess)) {
            return guess;
        }
        int low = 0;
        int high = ends.length - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (index < ends[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    long address(int row, int index) {
        return addresses[row] + strideBytes[row] * (index - first(row));
    }

    /** The index of a row's first block. */
    int first(int row) {
        return row == 0 ? 0 : ends[row - 1];
    }

    /** Behind the index of a row's last block. */
    int end(int row) {
        return ends[row];
    }

    /** From one block's start to the next one's. */
    long strideBytes(int row) {
        return strideBytes[row];
    }

    /** The length of all blocks, or 0 if there are several. */
    long commonBlockBytes() {
        return commonBlockBytes;
    }

    long blockBytes(int row) {
        return blockBytes[row];
    }
}
