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

    private final long[] sources;
    private final long[] targets;
    private final Arena arena;
    private final MemorySegment struct;

    /** What is copied into native memory at once. */
    private final int[] distances;

    private int first;
    private int count;
    private long bits;
    private int shift;

    /** Of blocks whose addresses stand in these arrays, which stay the caller's. */
    @SuppressWarnings("MustBeClosedChecker") // close() closes the arena
    GatherPlaces(long[] sources, long[] targets) {
        this.sources = sources;
        this.targets = targets;
        arena = Arena.ofShared();
        struct = arena.allocate(structBytes(sources.length), Long.BYTES);
        distances = new int[sources.length];
    }

    /** Of the kernel's list of so many places: all sources, then all targets, an int each. */
    private static long structBytes(int capacity) {
        return 2L * capacity * Integer.BYTES;
    }

    /**
     * Takes as many blocks as lie near enough to the first one, at least that.
     *
     * @param from the first block
     * @param most blocks from that one on
     */
    void measure(int from, int most) {
        first = from;
        count = most;
        while (!reaches()) {
            count /= 2;
        }
    }

    /** Sets the unit; false if a distance in it may be no int. */
    private boolean reaches() {
        bits = differing(sources) | differing(targets);
        shift = Math.min(Long.numberOfTrailingZeros(bits), MAX_SHIFT);
        // No distance is greater than those bits; most often this settles it.
        return bits >>> shift <= Integer.MAX_VALUE
                || Math.max(farthest(sources), farthest(targets)) >>> shift <= Integer.MAX_VALUE;
    }

    /** The bits in which an address differs from the first one. */
    private long differing(long[] addresses) {
        long base = addresses[first];
        long differing = 0;
        for (int i = first; i < first + count; i++) {
            differing |= addresses[i] ^ base;
        }
        return differing;
    }

    private long farthest(long[] addresses) {
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
     * @param capacity of the list, as many as were measured at least
     */
    MemorySegment struct(int capacity) {
        write(sources, 0);
        write(targets, (long) capacity * Integer.BYTES);
        return struct.asSlice(0, structBytes(capacity));
    }

    private void write(long[] addresses, long offset) {
        int start = first;
        long base = addresses[start];
        int unit = shift;
        for (int i = 0; i < count; i++) {
            distances[i] = (int) ((addresses[start + i] - base) >> unit);
        }
        MemorySegment.copy(distances, 0, struct, JAVA_INT, offset, count);
    }

    /** How many blocks. */
    int count() {
        return count;
    }

    /** The first block's source. */
    long source() {
        return sources[first];
    }

    /** The first block's target. */
    long target() {
        return targets[first];
    }

    /** Whose trailing zeros all addresses have. */
    long addressBits() {
        return bits | source() | target();
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
