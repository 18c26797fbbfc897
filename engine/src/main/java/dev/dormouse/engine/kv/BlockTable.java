package dev.dormouse.engine.kv;

import java.util.Arrays;

/**
 * The KV blocks of one sequence, in position order. Filled and emptied by the {@link BlockManager}
 * only.
 *
 * <p>The first {@link #cachedBlocks()} blocks are known to the prefix cache and may be shared: they
 * are read, never written.
 */
public final class BlockTable {
    private static final int INITIAL_CAPACITY = 16;

    private int[] blocks = new int[INITIAL_CAPACITY];
    private int size;
    private int cachedBlocks;
    private long lastContent = PrefixCache.ROOT;

    /** How many blocks the sequence has. */
    public int size() {
        return size;
    }

    /** True if the sequence has no blocks. */
    public boolean isEmpty() {
        return size == 0;
    }

    /** Leading blocks that are full and known to the prefix cache. */
    public int cachedBlocks() {
        return cachedBlocks;
    }

    /** The block that holds positions {@code index * blockTokens} and on. */
    public int block(int index) {
        return blocks[checkIndex(index)];
    }

    /** A copy of the table. */
    public int[] toArray() {
        return Arrays.copyOf(blocks, size);
    }

    void add(int block) {
        if (size == blocks.length) {
            blocks = Arrays.copyOf(blocks, size * 2);
        }
        blocks[size++] = block;
    }

    void markCached(int count, long content) {
        cachedBlocks = count;
        lastContent = content;
    }

    /** The content id of the prefix that the cached blocks hold. */
    long lastContent() {
        return lastContent;
    }

    void clear() {
        size = 0;
        markCached(0, PrefixCache.ROOT);
    }

    private int checkIndex(int index) {
        if (index < 0 || index >= size) {
            throw new IndexOutOfBoundsException("block index " + index + " in a table of " + size);
        }
        return index;
    }
}
