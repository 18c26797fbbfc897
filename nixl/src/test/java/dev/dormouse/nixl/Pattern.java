package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/** Bytes that tell from a seed and a position what must be there. */
final class Pattern {
    private Pattern() {}

    static byte at(long seed, long position) {
        long mixed = (seed * 0x9E3779B97F4A7C15L + position) * 0xBF58476D1CE4E5B9L;
        return (byte) (mixed >>> 56);
    }

    static void fill(MemorySegment memory, long seed) {
        for (long i = 0; i < memory.byteSize(); i++) {
            memory.set(JAVA_BYTE, i, at(seed, i));
        }
    }

    /** The first position where the bytes are not those at {@code from} of the pattern, or -1. */
    static long mismatch(MemorySegment memory, long seed, long from) {
        for (long i = 0; i < memory.byteSize(); i++) {
            if (memory.get(JAVA_BYTE, i) != at(seed, from + i)) {
                return i;
            }
        }
        return -1;
    }
}
