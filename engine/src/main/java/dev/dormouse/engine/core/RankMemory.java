package dev.dormouse.engine.core;

import dev.dormouse.memory.MemoryTag;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Set;

/**
 * One rank's memory by tag, all of it asleep at first: addresses that stay, pages that come and go.
 * What a tag holds after a wake is undefined. Used by one thread at a time.
 */
public interface RankMemory extends AutoCloseable {
    /** Where ranks get their memory from. */
    @FunctionalInterface
    interface Source {
        /**
         * Takes addresses, one range per tag.
         *
         * @param capacityBytes per tag; rounded up to whole pages
         */
        RankMemory reserve(int rank, Map<MemoryTag, Long> capacityBytes);
    }

    /** Keeps a tag awake while it is open. */
    interface Use extends AutoCloseable {
        /** The tag's memory, as long as its capacity; not to be touched after the close. */
        MemorySegment segment();

        @Override
        void close();
    }

    /** Where a tag's range starts: a page's address, the same for the life of the memory. */
    long address(MemoryTag tag);

    /** The tag's capacity in whole pages: what there is to register. */
    long lengthBytes(MemoryTag tag);

    /** Whether the tag's pages are there. */
    boolean isAwake(MemoryTag tag);

    /**
     * Opens a tag's memory for the engine's own code.
     *
     * @param holder who uses it and for what, for messages
     */
    Use use(MemoryTag tag, String holder);

    /**
     * Gives pages back to the machine; tags that sleep already are left alone.
     *
     * @return how many bytes went
     */
    long sleep(Set<MemoryTag> tags);

    /**
     * Brings pages; tags that are awake already are left alone.
     *
     * @return how many bytes came
     */
    long wake(Set<MemoryTag> tags);

    /** Gives pages and addresses back. Idempotent. */
    @Override
    void close();
}
