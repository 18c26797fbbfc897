package dev.dormouse.transport.local;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** A copy of host memory, with neighbours as one, piece by piece. */
final class HostCopy {
    /** How much is copied before it is looked whether to go on: about 0.2 ms. */
    static final long PIECE_BYTES = 1 << 20;

    /** Pairs of blocks whose addresses are asked for at once. */
    private static final int BATCH = 1024;

    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final boolean writes;
    private final long bytes;
    private final long[] here;
    private final long[] there;
    private final long[] lengths;

    /** Where the next piece starts. */
    private int next;

    private long nextOffset;

    private HostCopy(boolean writes, long bytes, long[] here, long[] there, long[] lengths) {
        this.writes = writes;
        this.bytes = bytes;
        this.here = here;
        this.there = there;
        this.lengths = lengths;
    }

    /**
     * Puts neighbours together.
     *
     * @param writes whether from here to there, or the other way
     */
    static HostCopy of(boolean writes, BlockPairs pairs) {
        long[] here = new long[pairs.size()];
        long[] there = new long[pairs.size()];
        long[] lengths = new long[pairs.size()];
        long[] sources = new long[Math.min(pairs.size(), BATCH)];
        long[] targets = new long[sources.length];
        PairAddresses next = new PairAddresses(pairs, true);
        int count = 0;
        while (next.hasNext()) {
            int blocks = next.fill(BATCH, sources, targets);
            long length = next.blockBytes();
            for (int i = 0; i < blocks; i++) {
                long from = sources[i];
                long to = targets[i];
                if (count > 0
                        && here[count - 1] + lengths[count - 1] == from
                        && there[count - 1] + lengths[count - 1] == to) {
                    lengths[count - 1] += length;
                } else {
                    here[count] = from;
                    there[count] = to;
                    lengths[count++] = length;
                }
            }
        }
        return new HostCopy(
                writes,
                pairs.bytes(),
                Arrays.copyOf(here, count),
                Arrays.copyOf(there, count),
                Arrays.copyOf(lengths, count));
    }

    /** Bytes of all blocks. */
    long bytes() {
        return bytes;
    }

    /** How many stretches of memory are copied. */
    int descriptors() {
        return lengths.length;
    }

    /** Whether all pieces are copied. */
    boolean isDone() {
        return next == lengths.length;
    }

    /** Copies the next piece; both sides must be mapped. */
    void copyPiece() {
        long left = PIECE_BYTES;
        while (left > 0 && next < lengths.length) {
            long length = Math.min(left, lengths[next] - nextOffset);
            long ours = here[next] + nextOffset;
            long theirs = there[next] + nextOffset;
            // As fast as memcpy, and a page that cannot be had is an InternalError, not the end.
            MemorySegment.copy(ALL, writes ? ours : theirs, ALL, writes ? theirs : ours, length);
            left -= length;
            nextOffset += length;
            if (nextOffset == lengths[next]) {
                next++;
                nextOffset = 0;
            }
        }
    }
}
