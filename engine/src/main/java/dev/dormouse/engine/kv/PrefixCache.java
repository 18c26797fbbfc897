package dev.dormouse.engine.kv;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Finds the KV block that holds given tokens behind a given prefix.
 *
 * <p>Every cached block's content gets an id of its own, and a block's key is its predecessor's
 * content id with its own tokens. A match therefore compares real tokens, block by block: unlike a
 * chain of hashes it cannot be wrong by a collision.
 */
final class PrefixCache {
    /** The content id of the empty prefix. */
    static final long ROOT = 0;

    /** A cached block: where it is, and the id of the prefix that ends with it. */
    record Entry(int block, long content) {}

    private static final class Key {
        private final long parent;
        private final int[] tokens;
        private final int hash;

        Key(long parent, int[] tokens, int from, int to) {
            this.parent = parent;
            this.tokens = Arrays.copyOfRange(tokens, from, to);
            this.hash = 31 * Long.hashCode(parent) + Arrays.hashCode(this.tokens);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Key key
                    && key.parent == parent
                    && Arrays.equals(key.tokens, tokens);
        }
    }

    private final Map<Key, Entry> entries = new HashMap<>();
    private final @Nullable Key[] keyOfBlock;
    private long nextContent = ROOT + 1;

    PrefixCache(int blocks) {
        keyOfBlock = new Key[blocks];
    }

    @Nullable Entry find(long parent, int[] tokens, int from, int to) {
        return entries.get(new Key(parent, tokens, from, to));
    }

    /** Makes a block known, unless its content is known already; answers the content's entry. */
    Entry put(long parent, int[] tokens, int from, int to, int block) {
        Key key = new Key(parent, tokens, from, to);
        @Nullable Entry known = entries.get(key);
        if (known != null) {
            return known;
        }
        Entry entry = new Entry(block, nextContent++);
        entries.put(key, entry);
        keyOfBlock[block] = key;
        return entry;
    }

    /** Forgets what a block held, before it is written again. */
    void evict(int block) {
        @Nullable Key key = keyOfBlock[block];
        if (key != null) {
            entries.remove(key);
            keyOfBlock[block] = null;
        }
    }

    /** Forgets everything; answers how many blocks were known. Content ids are never used again. */
    int clear() {
        int known = entries.size();
        entries.clear();
        Arrays.fill(keyOfBlock, null);
        return known;
    }

    boolean isEmpty() {
        return entries.isEmpty();
    }
}
