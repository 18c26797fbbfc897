package dev.dormouse.model.tokenizer;

import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Byte-pair merging by rank.
 *
 * <p>The table maps a pair of token ids to the rank of its merge and the merged token. A word of n
 * bytes takes O(n log n): live symbols form a linked list, candidate merges a heap.
 */
final class PairMerges {
    private static final int NONE = -1;
    private static final long EMPTY = -1;

    private final long[] keys;
    private final int[] ranks;
    private final int[] merged;
    private final int mask;

    /** A table for up to {@code capacity} merges. */
    PairMerges(int capacity) {
        int slots = Integer.highestOneBit(Math.max(8, capacity)) << 2;
        keys = new long[slots];
        ranks = new int[slots];
        merged = new int[slots];
        mask = slots - 1;
        Arrays.fill(keys, EMPTY);
    }

    /**
     * The table of pairs of spellings, in the order of their ranks.
     *
     * @param name of the list, for messages
     * @throws TokenizerException when an entry is no pair of tokens, or what it makes is no token
     */
    static PairMerges of(List<List<String>> pairs, Vocabulary vocabulary, String name) {
        PairMerges merges = new PairMerges(pairs.size());
        for (int rank = 0; rank < pairs.size(); rank++) {
            List<String> pair = pairs.get(rank);
            int left = vocabulary.id(pair.getFirst());
            int right = vocabulary.id(pair.getLast());
            int merged = vocabulary.id(pair.getFirst().concat(pair.getLast()));
            if (pair.size() != 2 || left < 0 || right < 0 || merged < 0) {
                throw new TokenizerException(
                        "load tokenizer: entry %d of '%s', '%s', is no pair of tokens with a token"
                                .formatted(rank, name, String.join(" ", pair)));
            }
            merges.add(left, right, rank, merged);
        }
        return merges;
    }

    /** Adds a merge; of two for the same pair the first one counts. */
    void add(int left, int right, int rank, int result) {
        long key = key(left, right);
        int slot = slot(key);
        if (keys[slot] == EMPTY) {
            keys[slot] = key;
            ranks[slot] = rank;
            merged[slot] = result;
        }
    }

    /**
     * Merges the symbols of one word in place until no merge applies.
     *
     * @param ids token ids; −1 stands for a byte without a token, which merges with nothing
     * @return how many ids at the front of {@code ids} are the result
     */
    int merge(int[] ids) {
        int count = ids.length;
        int[] next = new int[count];
        int[] previous = new int[count];
        // A candidate is rank << 32 | position of the left symbol: lowest rank first, then
        // leftmost.
        PriorityQueue<Long> candidates = new PriorityQueue<>();
        for (int i = 0; i < count; i++) {
            previous[i] = i - 1;
            next[i] = i + 1 < count ? i + 1 : NONE;
        }
        for (int i = 0; i + 1 < count; i++) {
            offer(candidates, ids, i, i + 1);
        }
        while (!candidates.isEmpty()) {
            long candidate = candidates.remove();
            int left = (int) candidate;
            int right = next[left];
            // A candidate is stale when one of its symbols was merged into another meanwhile. A
            // merged-away symbol has no successor, and a rank belongs to one pair only.
            if (right == NONE) {
                continue;
            }
            int slot = slot(key(ids[left], ids[right]));
            if (keys[slot] == EMPTY || ranks[slot] != (int) (candidate >>> 32)) {
                continue;
            }
            ids[left] = merged[slot];
            int after = next[right];
            next[left] = after;
            next[right] = NONE;
            if (after != NONE) {
                previous[after] = left;
                offer(candidates, ids, left, after);
            }
            if (previous[left] != NONE) {
                offer(candidates, ids, previous[left], left);
            }
        }
        int kept = 0;
        for (int i = count == 0 ? NONE : 0; i != NONE; i = next[i]) {
            ids[kept++] = ids[i];
        }
        return kept;
    }

    private void offer(PriorityQueue<Long> candidates, int[] ids, int left, int right) {
        if (ids[left] < 0 || ids[right] < 0) {
            return;
        }
        int slot = slot(key(ids[left], ids[right]));
        if (keys[slot] != EMPTY) {
            candidates.add((long) ranks[slot] << 32 | left);
        }
    }

    private static long key(int left, int right) {
        return (long) left << 32 | right;
    }

    /** The slot of {@code key}, or the empty one where it would go. */
    private int slot(long key) {
        long hash = key * 0x9e3779b97f4a7c15L;
        int slot = (int) (hash >>> 32) & mask;
        while (keys[slot] != EMPTY && keys[slot] != key) {
            slot = (slot + 1) & mask;
        }
        return slot;
    }
}
