package dev.dormouse.transport.local;

import dev.dormouse.transport.TransportException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** What to copy from where to where, with neighbours as one. */
final class CopyPlan {
    /** How much is copied before it is looked whether to go on: about 0.2 ms. */
    static final long PIECE_BYTES = 1 << 20;

    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final boolean writes;
    private final long[] here;
    private final long[] there;
    private final long[] lengths;
    private final long bytes;

    /** Where the next piece starts: used by the copying thread. */
    private int next;

    private long nextOffset;

    private CopyPlan(boolean writes, long[] here, long[] there, long[] lengths) {
        this.writes = writes;
        this.here = here;
        this.there = there;
        this.lengths = lengths;
        this.bytes = Arrays.stream(lengths).sum();
    }

    /**
     * Pairs blocks.
     *
     * @param writes whether from here to there, or the other way
     * @throws IllegalArgumentException if the indices do not pair, are none, or name no blocks
     * @throws TransportException if blocks that pair differ in length
     */
    static CopyPlan of(
            boolean writes,
            BlockTable local,
            int[] localIndices,
            BlockTable remote,
            int[] remoteIndices) {
        if (localIndices.length == 0 || localIndices.length != remoteIndices.length) {
            throw new IllegalArgumentException(
                    "transfer refused: %d local and %d remote blocks do not pair"
                            .formatted(localIndices.length, remoteIndices.length));
        }
        long[] here = new long[localIndices.length];
        long[] there = new long[localIndices.length];
        long[] lengths = new long[localIndices.length];
        int count = 0;
        for (int i = 0; i < localIndices.length; i++) {
            int localRow = local.row(requireIndex("local", localIndices[i], local));
            int remoteRow = remote.row(requireIndex("remote", remoteIndices[i], remote));
            long length = local.blockBytes(localRow);
            if (length != remote.blockBytes(remoteRow)) {
                throw new TransportException(
                        "transfer refused: local block %d has %d bytes, remote block %d has %d"
                                .formatted(
                                        localIndices[i],
                                        length,
                                        remoteIndices[i],
                                        remote.blockBytes(remoteRow)));
            }
            long from = local.address(localRow, localIndices[i]);
            long to = remote.address(remoteRow, remoteIndices[i]);
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
        return new CopyPlan(
                writes,
                Arrays.copyOf(here, count),
                Arrays.copyOf(there, count),
                Arrays.copyOf(lengths, count));
    }

    private static int requireIndex(String which, int index, BlockTable blocks) {
        if (index < 0 || index >= blocks.size()) {
            throw new IllegalArgumentException(
                    "transfer refused: %s block %d does not exist, there are %d"
                            .formatted(which, index, blocks.size()));
        }
        return index;
    }

    long bytes() {
        return bytes;
    }

    int descriptors() {
        return lengths.length;
    }

    boolean isDone() {
        return next == lengths.length;
    }

    /** Copies the next piece. Both sides must be mapped. */
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
