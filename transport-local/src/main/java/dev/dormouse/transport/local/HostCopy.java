package dev.dormouse.transport.local;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A copy of host memory, with neighbours as one, piece by piece. One thread at a time asks for the
 * next piece; different threads may copy different ones at once.
 */
final class HostCopy {
    /** How much is copied before it is looked whether to go on: about 0.05 ms. */
    static final long PIECE_BYTES = 256 << 10;

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

    /** The next piece, for whoever asks; null if there is none any more. */
    @Nullable Piece next() {
        if (next == lengths.length) {
            return null;
        }
        Piece piece = new Piece(next, nextOffset);
        long left = PIECE_BYTES;
        while (left > 0 && next < lengths.length) {
            long length = Math.min(left, lengths[next] - nextOffset);
            left -= length;
            nextOffset += length;
            if (nextOffset == lengths[next]) {
                next++;
                nextOffset = 0;
            }
        }
        return piece;
    }

    /** A part of a copy: at most {@link #PIECE_BYTES}, of one stretch or of several. */
    final class Piece {
        private final int first;
        private final long firstOffset;

        private Piece(int first, long firstOffset) {
            this.first = first;
            this.firstOffset = firstOffset;
        }

        /** Copies it; both sides must be mapped. */
        void copy() {
            long left = PIECE_BYTES;
            long offset = firstOffset;
            for (int i = first; left > 0 && i < lengths.length; i++) {
                long length = Math.min(left, lengths[i] - offset);
                copyBytes(here[i] + offset, there[i] + offset, length);
                left -= length;
                offset = 0;
            }
        }
    }

    /** As fast as memcpy, and a page that cannot be had is an InternalError, not the end. */
    private void copyBytes(long ours, long theirs, long length) {
        MemorySegment.copy(ALL, writes ? ours : theirs, ALL, writes ? theirs : ours, length);
    }
}
