package dev.dormouse.engine.kv;

import org.jspecify.annotations.Nullable;

/**
 * Gives KV blocks to sequences and takes them back.
 *
 * <p>A block is in use (referenced by one or more tables) or free. A free block may still hold a
 * prefix that the cache knows; it is found again by {@link #cachedTokens}, until it is handed out
 * for something else, the longest unused first.
 *
 * <p>Not thread-safe.
 */
public final class BlockManager {
    private final int blocks;
    private final int blockTokens;
    private final boolean prefixCaching;
    private final int[] references;
    private final FreeQueue free;
    private final PrefixCache cache;

    /**
     * All blocks start free.
     *
     * @param blocks blocks in the KV cache
     * @param blockTokens tokens per block
     * @param prefixCaching whether full blocks are remembered by their tokens
     */
    public BlockManager(int blocks, int blockTokens, boolean prefixCaching) {
        if (blocks < 1 || blockTokens < 1) {
            throw new IllegalArgumentException(
                    "block manager: needs at least one block of at least one token, but blocks="
                            + blocks
                            + " blockTokens="
                            + blockTokens);
        }
        this.blocks = blocks;
        this.blockTokens = blockTokens;
        this.prefixCaching = prefixCaching;
        this.references = new int[blocks];
        this.free = new FreeQueue(blocks);
        this.cache = new PrefixCache(blocks);
    }

    /** Blocks in the KV cache. */
    public int blocks() {
        return blocks;
    }

    /** Tokens per block. */
    public int blockTokens() {
        return blockTokens;
    }

    /** Blocks that no sequence uses. */
    public int freeBlocks() {
        return free.size();
    }

    /** Blocks that {@code tokens} positions need. */
    public int blocksFor(int tokens) {
        return Math.ceilDiv(tokens, blockTokens);
    }

    /**
     * How many leading tokens the prefix cache holds. No effect.
     *
     * @param tokens the sequence's tokens
     * @param limit look at no more than this many of them
     * @return a multiple of the block size
     */
    public int cachedTokens(int[] tokens, int limit) {
        if (!prefixCaching) {
            return 0;
        }
        long parent = PrefixCache.ROOT;
        int found = 0;
        while (found + blockTokens <= limit) {
            PrefixCache.@Nullable Entry entry =
                    cache.find(parent, tokens, found, found + blockTokens);
            if (entry == null) {
                break;
            }
            parent = entry.content();
            found += blockTokens;
        }
        return found;
    }

    /**
     * Gives an empty table the cached blocks of its prefix, and fresh blocks behind them.
     *
     * @param cachedTokens what {@link #cachedTokens} answered, or less; a multiple of the block
     *     size
     * @param totalTokens positions to cover, at least {@code cachedTokens}
     * @return false, without effect, if there are too few free blocks
     */
    public boolean allocate(BlockTable table, int[] tokens, int cachedTokens, int totalTokens) {
        if (!table.isEmpty()) {
            throw new IllegalStateException(
                    "allocate: the table has " + table.size() + " blocks already");
        }
        int shared = cachedTokens / blockTokens;
        PrefixCache.Entry[] hits = new PrefixCache.Entry[shared];
        long parent = PrefixCache.ROOT;
        int hitsInFreeQueue = 0;
        for (int i = 0; i < shared; i++) {
            PrefixCache.@Nullable Entry entry =
                    cache.find(parent, tokens, i * blockTokens, (i + 1) * blockTokens);
            if (entry == null) {
                throw new IllegalStateException(
                        "allocate: block " + i + " of the cached prefix is gone");
            }
            hits[i] = entry;
            parent = entry.content();
            hitsInFreeQueue += references[entry.block()] == 0 ? 1 : 0;
        }
        if (blocksFor(totalTokens) - shared > free.size() - hitsInFreeQueue) {
            return false;
        }
        for (PrefixCache.Entry hit : hits) {
            reference(hit.block());
            table.add(hit.block());
        }
        table.markCached(shared, parent);
        return grow(table, totalTokens);
    }

    /**
     * Adds fresh blocks until the table covers {@code totalTokens} positions.
     *
     * @return false, without effect, if there are too few free blocks
     */
    public boolean grow(BlockTable table, int totalTokens) {
        int missing = blocksFor(totalTokens) - table.size();
        if (missing > free.size()) {
            return false;
        }
        for (int i = 0; i < missing; i++) {
            int block = free.removeFirst();
            cache.evict(block);
            references[block] = 1;
            table.add(block);
        }
        return true;
    }

    /**
     * Makes the table's full blocks known to the prefix cache. Call it once their K and V are
     * computed or read.
     *
     * @param tokens the sequence's tokens
     * @param computedTokens positions whose K and V the table's blocks hold
     */
    public void cacheFullBlocks(BlockTable table, int[] tokens, int computedTokens) {
        if (!prefixCaching) {
            return;
        }
        int full = computedTokens / blockTokens;
        long parent = table.lastContent();
        for (int i = table.cachedBlocks(); i < full; i++) {
            parent =
                    cache.put(
                                    parent,
                                    tokens,
                                    i * blockTokens,
                                    (i + 1) * blockTokens,
                                    table.block(i))
                            .content();
            table.markCached(i + 1, parent);
        }
    }

    /**
     * Takes a table's blocks back, the last first, so that a prefix outlives what follows it. The
     * table is empty afterwards.
     */
    public void free(BlockTable table) {
        for (int i = table.size() - 1; i >= 0; i--) {
            int block = table.block(i);
            if (references[block] <= 0) {
                throw new IllegalStateException("free: KV block " + block + " is not in use");
            }
            if (--references[block] == 0) {
                free.addLast(block);
            }
        }
        table.clear();
    }

    /**
     * Forgets every prefix, since the KV that it describes is gone or no longer right. Tables in
     * use keep their blocks; what they add later follows a forgotten prefix, and is never found.
     *
     * @return how many blocks were known
     */
    public int resetPrefixCache() {
        return cache.clear();
    }

    /** True if a prefix is known. */
    public boolean hasCachedPrefixes() {
        return !cache.isEmpty();
    }

    private void reference(int block) {
        if (references[block]++ == 0) {
            free.remove(block);
        }
    }
}
