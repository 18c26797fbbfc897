package dev.dormouse.transport.nixl;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * What blocks hold: numbers that tell the prompt, the block's place in it, and the place in the
 * block.
 */
final class KvContent {
    /** What is there before anything was read. */
    static final long POISON = 0xDEDEDEDEDEDEDEDEL;

    private KvContent() {}

    static void fill(MemorySegment block, long seed, long place) {
        long value = first(seed, place);
        for (long i = 0; i < block.byteSize() / Long.BYTES; i++) {
            block.setAtIndex(JAVA_LONG, i, value + i);
        }
    }

    static boolean matches(MemorySegment block, long seed, long place) {
        long value = first(seed, place);
        for (long i = 0; i < block.byteSize() / Long.BYTES; i++) {
            if (block.getAtIndex(JAVA_LONG, i) != value + i) {
                return false;
            }
        }
        return true;
    }

    static void poison(MemorySegment block) {
        block.fill((byte) POISON);
    }

    static boolean isPoisoned(MemorySegment block) {
        for (long i = 0; i < block.byteSize() / Long.BYTES; i++) {
            if (block.getAtIndex(JAVA_LONG, i) != POISON) {
                return false;
            }
        }
        return true;
    }

    private static long first(long seed, long place) {
        return (seed * 0x9E3779B97F4A7C15L + place) * 0xBF58476D1CE4E5B9L;
    }
}
