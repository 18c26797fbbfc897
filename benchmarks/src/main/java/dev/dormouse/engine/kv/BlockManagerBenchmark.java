package dev.dormouse.engine.kv;

import dev.dormouse.benchmarks.Timed;
import java.util.Arrays;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;

/** What a prompt costs the block manager, from its admission to its end. */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class BlockManagerBenchmark extends Timed {
    private static final int BLOCK_TOKENS = 16;
    private static final int PROMPTS = 8; // that fit

    /** Of the prompt. */
    @Param("1024")
    public int tokens;

    private BlockManager plain;
    private BlockManager caching;
    private final BlockTable table = new BlockTable();
    private int[] known;
    private int[] other;

    /** Makes a prompt known to a cache. */
    @Setup
    public void setUp() {
        int blocks = PROMPTS * Math.ceilDiv(tokens, BLOCK_TOKENS);
        plain = new BlockManager(blocks, BLOCK_TOKENS, false);
        caching = new BlockManager(blocks, BLOCK_TOKENS, true);
        known = new int[tokens];
        Arrays.setAll(known, i -> i);
        other = known.clone();
        admit(caching, known);
    }

    private int admit(BlockManager manager, int[] prompt) {
        int cached = manager.cachedTokens(prompt, tokens);
        if (!manager.allocate(table, prompt, cached, tokens)) {
            throw new IllegalStateException("no blocks are free");
        }
        manager.cacheFullBlocks(table, prompt, tokens);
        manager.free(table);
        return cached;
    }

    /** Blocks are taken and given back; no prefix is kept. */
    @Benchmark
    public int withoutCache() {
        return admit(plain, known);
    }

    /** All blocks are found. */
    @Benchmark
    public int prefixHit() {
        return admit(caching, known);
    }

    /** No block is found, so all are remembered, in the place of others. */
    @Benchmark
    public int prefixMiss() {
        other[0]--;
        return admit(caching, other);
    }
}
