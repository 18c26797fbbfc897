package dev.dormouse.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class BlockManagerTest {
    private static final int BLOCK = 4;

    private static int[] tokens(int count) {
        return IntStream.range(100, 100 + count).toArray();
    }

    @Test
    void findsNothingBeforeSomethingWasCached() {
        BlockManager manager = new BlockManager(8, BLOCK, true);
        assertThat(manager.cachedTokens(tokens(16), 16)).isZero();
    }

    @Test
    void findsOnlyFullBlocksOfACommonPrefix() {
        BlockManager manager = new BlockManager(8, BLOCK, true);
        BlockTable table = new BlockTable();
        int[] tokens = tokens(11);
        assertThat(manager.allocate(table, tokens, 0, 11)).isTrue();
        manager.cacheFullBlocks(table, tokens, 11);
        assertThat(manager.cachedTokens(tokens, 11)).isEqualTo(8);
        assertThat(manager.cachedTokens(tokens, 7)).isEqualTo(4);
        int[] other = tokens.clone();
        other[5]++;
        assertThat(manager.cachedTokens(other, 11)).isEqualTo(4);
        other[0]++;
        assertThat(manager.cachedTokens(other, 11)).isZero();
    }

    @Test
    void sharesCachedBlocksAndKeepsThemUntilTheLastUserIsGone() {
        BlockManager manager = new BlockManager(8, BLOCK, true);
        int[] tokens = tokens(12);
        BlockTable first = new BlockTable();
        manager.allocate(first, tokens, 0, 12);
        manager.cacheFullBlocks(first, tokens, 12);
        BlockTable second = new BlockTable();
        assertThat(manager.allocate(second, tokens, 8, 12)).isTrue();
        assertThat(second.block(0)).isEqualTo(first.block(0));
        assertThat(second.block(1)).isEqualTo(first.block(1));
        assertThat(second.block(2)).isNotEqualTo(first.block(2));
        assertThat(manager.freeBlocks()).isEqualTo(4);
        manager.free(first);
        assertThat(manager.freeBlocks()).isEqualTo(5);
        manager.free(second);
        assertThat(manager.freeBlocks()).isEqualTo(8);
        assertThat(manager.cachedTokens(tokens, 12)).isEqualTo(12);
    }

    @Test
    void refusesWithoutEffectWhenBlocksAreShort() {
        BlockManager manager = new BlockManager(3, BLOCK, true);
        BlockTable table = new BlockTable();
        assertThat(manager.allocate(table, tokens(16), 0, 16)).isFalse();
        assertThat(table.isEmpty()).isTrue();
        assertThat(manager.freeBlocks()).isEqualTo(3);
        assertThat(manager.allocate(table, tokens(12), 0, 8)).isTrue();
        assertThat(manager.grow(table, 16)).isFalse();
        assertThat(table.size()).isEqualTo(2);
    }

    @Test
    void countsFreeCachedBlocksThatARequestTakesForItself() {
        BlockManager manager = new BlockManager(3, BLOCK, true);
        int[] tokens = tokens(16);
        BlockTable table = new BlockTable();
        manager.allocate(table, tokens, 0, 8);
        manager.cacheFullBlocks(table, tokens, 8);
        manager.free(table);
        // Three are free, two of them hold the prefix: only one is left for the other two blocks.
        assertThat(manager.allocate(table, tokens, 8, 16)).isFalse();
        assertThat(manager.freeBlocks()).isEqualTo(3);
        assertThat(manager.allocate(table, tokens, 8, 12)).isTrue();
    }

    @Test
    void forgetsEveryPrefixAtOnceAndNeverFindsWhatFollowsAForgottenOne() {
        BlockManager manager = new BlockManager(8, BLOCK, true);
        int[] tokens = tokens(12);
        BlockTable table = new BlockTable();
        manager.allocate(table, tokens, 0, 12);
        manager.cacheFullBlocks(table, tokens, 8);
        assertThat(manager.resetPrefixCache()).isEqualTo(2);
        manager.cacheFullBlocks(table, tokens, 12);
        assertThat(manager.cachedTokens(tokens, 12)).isZero();
    }

    @Test
    void remembersNothingWhenPrefixCachingIsOff() {
        BlockManager manager = new BlockManager(8, BLOCK, false);
        int[] tokens = tokens(8);
        BlockTable table = new BlockTable();
        manager.allocate(table, tokens, 0, 8);
        manager.cacheFullBlocks(table, tokens, 8);
        assertThat(manager.cachedTokens(tokens, 8)).isZero();
    }

    @Test
    void freeingATableAgainIsHarmless() {
        BlockManager manager = new BlockManager(4, BLOCK, true);
        BlockTable table = new BlockTable();
        manager.allocate(table, tokens(8), 0, 8);
        manager.free(table);
        manager.free(table);
        assertThat(manager.freeBlocks()).isEqualTo(4);
        assertThatThrownBy(() -> table.block(0)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    /**
     * Against a model: what a block holds is the whole token prefix up to its end; a shared block
     * must hold the same.
     */
    @Test
    void neverSharesABlockBetweenDifferentPrefixesAndLosesNone() {
        Seeded.forAll(200, BlockManagerTest::randomLife);
    }

    private static void randomLife(SplittableRandom random) {
        int blocks = random.nextInt(2, 20);
        BlockManager manager = new BlockManager(blocks, BLOCK, true);
        Map<Integer, List<Integer>> contentOfBlock = new HashMap<>();
        Map<BlockTable, int[]> live = new HashMap<>();
        for (int step = 0; step < 200; step++) {
            switch (random.nextInt(4)) {
                case 0, 1 -> start(random, manager, contentOfBlock, live);
                case 2 -> {
                    if (!live.isEmpty()) {
                        BlockTable table = live.keySet().iterator().next();
                        live.remove(table);
                        manager.free(table);
                    }
                }
                default -> {
                    if (random.nextInt(10) == 0) {
                        manager.resetPrefixCache();
                    }
                }
            }
            Set<Integer> used = new HashSet<>();
            live.keySet().forEach(table -> IntStream.of(table.toArray()).forEach(used::add));
            assertThat(manager.freeBlocks()).isEqualTo(blocks - used.size());
        }
        new ArrayList<>(live.keySet()).forEach(manager::free);
        assertThat(manager.freeBlocks()).isEqualTo(blocks);
    }

    private static void start(
            SplittableRandom random,
            BlockManager manager,
            Map<Integer, List<Integer>> contentOfBlock,
            Map<BlockTable, int[]> live) {
        int[] tokens = random.ints(random.nextInt(1, 24), 0, 2).toArray();
        int cached = manager.cachedTokens(tokens, tokens.length);
        BlockTable table = new BlockTable();
        if (!manager.allocate(table, tokens, cached, tokens.length)) {
            return;
        }
        for (int i = 0; i < table.size(); i++) {
            List<Integer> prefix =
                    IntStream.of(tokens).limit((long) (i + 1) * BLOCK).boxed().toList();
            if (i < cached / BLOCK) {
                assertThat(contentOfBlock.get(table.block(i))).isEqualTo(prefix);
            } else {
                int block = table.block(i);
                assertThat(live.keySet().stream().flatMapToInt(t -> IntStream.of(t.toArray())))
                        .doesNotContain(block);
                contentOfBlock.put(block, prefix);
            }
        }
        manager.cacheFullBlocks(table, tokens, tokens.length);
        live.put(table, tokens);
    }
}
