package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

/**
 * Rows of activations in the order that block products read: {@code [block][group][row in
 * group][32]}, with the sum of every row's block beside it.
 *
 * <p>Rows past the last one of a group hold leftovers; products with them are computed and ignored.
 * Threads may fill different rows at once.
 */
public final class BlockedRows {
    /** Rows per group. */
    public static final int GROUP = 6;

    private float[] values = new float[0];
    private float[] sums = new float[0];
    private int rows;
    private int groups;
    private int blocks;

    /**
     * Makes room for {@code rows} rows of {@code width} inputs, a multiple of 32; keeps nothing.
     */
    public void reshape(int rows, int width) {
        this.rows = rows;
        groups = (rows + GROUP - 1) / GROUP;
        blocks = width / BLOCK;
        int blockRows = blocks * groups * GROUP;
        if (sums.length < blockRows) {
            values = new float[Math.multiplyExact(blockRows, BLOCK)];
            sums = new float[blockRows];
        }
    }

    /** Rows in use. */
    public int rows() {
        return rows;
    }

    /** Groups in use, the last one perhaps not full. */
    public int groups() {
        return groups;
    }

    /** Blocks of a row. */
    public int blocks() {
        return blocks;
    }

    /** How many rows {@code group} holds. */
    public int rowsOf(int group) {
        return Math.min(GROUP, rows - group * GROUP);
    }

    /** The elements. */
    public float[] values() {
        return values;
    }

    /** Where the 32 elements of a row's block start in {@link #values()}. */
    public int index(int row, int block) {
        return sumIndex(row, block) * BLOCK;
    }

    /** The sums of 32 elements. */
    public float[] sums() {
        return sums;
    }

    /** Where a row's block has its sum in {@link #sums()}; the rows of a group are neighbours. */
    public int sumIndex(int row, int block) {
        return block * groups * GROUP + row;
    }

    /** Computes the sum of a row's block, in the order of {@link Lanes}. */
    void sumBlock(int row, int block) {
        sums[sumIndex(row, block)] = Lanes.sum(values, index(row, block));
    }
}
