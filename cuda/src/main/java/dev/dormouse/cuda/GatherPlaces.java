package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Blocks as a launch takes them along: how far source and target lie from the first block's, in
 * units of a power of two that all these distances are multiples of. That is half of what addresses
 * take, so a launch has twice the blocks, and is made sooner. Used by one thread at a time.
 */
final class GatherPlaces implements AutoCloseable {
    /** Source and target of a block, each an int. */
    static final long PLACE_BYTES = 2L * Integer.BYTES;

    private static final int MAX_SHIFT = 31;

    private final Arena arena;
    private final MemorySegment places;
    private int count;
    private long source;
    private long target;
    private int shift;

    /** Room for so many blocks. */
    @SuppressWarnings("MustBeClosedChecker") // close() closes the arena
    GatherPlaces(int capacity) {
        arena = Arena.ofShared();
        places = arena.allocate(capacity * PLACE_BYTES, PLACE_BYTES);
    }

    /**
     * Takes as many blocks as lie near enough to the first one, at least that.
     *
     * @param addresses of source and target in turn
     * @param first the first block
     * @param end behind the last one
     */
    void set(long[] addresses, int first, int end) {
        source = addresses[2 * first];
        target = addresses[2 * first + 1];
        count = end - first;
        while (!measure(addresses, first)) {
            count /= 2;
        }
        for (int i = 0; i < count; i++) {
            int pair = 2 * (first + i);
            places.setAtIndex(JAVA_INT, 2L * i, (int) ((addresses[pair] - source) >> shift));
            places.setAtIndex(
                    JAVA_INT, 2L * i + 1, (int) ((addresses[pair + 1] - target) >> shift));
        }
    }

    /** Sets the unit; false if a distance in it may be no int. */
    private boolean measure(long[] addresses, int first) {
        long bits = 0;
        long magnitudes = 0;
        for (int pair = 2 * first; pair < 2 * (first + count); pair += 2) {
            long here = addresses[pair] - source;
            long there = addresses[pair + 1] - target;
            bits |= here | there;
            magnitudes |= magnitude(here) | magnitude(there);
        }
        shift = Math.min(Long.numberOfTrailingZeros(bits), MAX_SHIFT);
        return magnitudes >>> shift <= Integer.MAX_VALUE;
    }

    /** The bits that a distance needs besides its sign. */
    private static long magnitude(long distance) {
        return distance < 0 ? ~distance : distance;
    }

    /** How many blocks. */
    int count() {
        return count;
    }

    /** The first block's source. */
    long source() {
        return source;
    }

    /** The first block's target. */
    long target() {
        return target;
    }

    /** Of the unit: that is 2 to the power of this. */
    int shift() {
        return shift;
    }

    /** Room for so many blocks, those that were taken at its start. */
    MemorySegment segment(int capacity) {
        return places.asSlice(0, capacity * PLACE_BYTES);
    }

    /** Idempotent. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
