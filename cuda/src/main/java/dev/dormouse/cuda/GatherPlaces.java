package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Blocks as a launch takes them along: how far source and target lie from the first block's, in
 * units of a power of two that all these distances are multiples of. That is half of what addresses
 * take, so a launch has twice the blocks, and is made sooner. Used by one thread at a time.
 *
 * <p>Loops over one array each, which C2 makes vector instructions of.
 */
final class GatherPlaces implements AutoCloseable {
    private static final int MAX_SHIFT = 31;

    private final Arena arena;
    private final MemorySegment struct;

    /** What is copied into native memory at once. */
    private final int[] distances;

    private int count;
    private long bits;
    private long source;
    private long target;
    private int shift;

    /** Room for so many blocks. */
    @SuppressWarnings("MustBeClosedChecker") // close() closes the arena
    GatherPlaces(int capacity) {
        arena = Arena.ofShared();
        struct = arena.allocate(structBytes(capacity), Long.BYTES);
        distances = new int[capacity];
    }

    /** Of the kernel's list of so many places: all sources, then all targets, an int each. */
    private static long structBytes(int capacity) {
        return 2L * capacity * Integer.BYTES;
    }

    /**
     * Takes as many blocks as lie near enough to the first one, at least that.
     *
     * @param first the first block
     * @param blocks from that one on, at most
     */
    void measure(long[] sources, long[] targets, int first, int blocks) {
        source = sources[first];
        target = targets[first];
        count = blocks;
        while (!reaches(sources, targets, first)) {
            count /= 2;
        }
    }

    /** Sets the unit; false if a distance in it may be no int. */
    private boolean reaches(long[] sources, long[] targets, int first) {
        bits = differing(sources, first) | differing(targets, first);
        shift = Math.min(Long.numberOfTrailingZeros(bits), MAX_SHIFT);
        // No distance is greater than those bits; most often this settles it.
        return bits >>> shift <= Integer.MAX_VALUE
                || Math.max(farthest(sources, first), farthest(targets, first)) >>> shift
                        <= Integer.MAX_VALUE;
    }

    /** The bits in which an address differs from the first one. */
    private long differing(long[] addresses, int first) {
        long base = addresses[first];
        long differing = 0;
        for (int i = first; i < first + count; i++) {
            differing |= addresses[i] ^ base;
        }
        return differing;
    }

    private long farthest(long[] addresses, int first) {
        long least = Long.MAX_VALUE;
        long greatest = Long.MIN_VALUE;
        for (int i = first; i < first + count; i++) {
            least = Math.min(least, addresses[i]);
            greatest = Math.max(greatest, addresses[i]);
        }
        return Math.max(greatest - addresses[first], addresses[first] - least);
    }

    /**
     * The kernel's list, valid until the next call.
     *
     * @param first as it was measured
     * @param capacity of the list, as many as were measured at least
     */
    MemorySegment struct(long[] sources, long[] targets, int first, int capacity) {
        write(sources, first, 0);
        write(targets, first, (long) capacity * Integer.BYTES);
        return struct.asSlice(0, structBytes(capacity));
    }

    private void write(long[] addresses, int first, long offset) {
        long base = addresses[first];
        int unit = shift;
        for (int i = 0; i < count; i++) {
            distances[i] = (int) ((addresses[first + i] - base) >> unit);
        }
        MemorySegment.copy(distances, 0, struct, JAVA_INT, offset, count);
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

    /** Whose trailing zeros all addresses have. */
    long addressBits() {
        return bits | source | target;
    }

    /** Of the unit: that is 2 to the power of this. */
    int shift() {
        return shift;
    }

    /** Idempotent. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
