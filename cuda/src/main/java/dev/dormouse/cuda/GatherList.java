package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Which blocks a {@link GatherKernel} copies in one launch, each checked. Filled again and again: a
 * launch takes the list along. Used by one thread at a time.
 */
public final class GatherList implements AutoCloseable {
    /** The most blocks: what fits into the 32,764 bytes that the arguments of a launch may have. */
    public static final int CAPACITY = 2044;

    private static final long ENTRY_BYTES = 2L * Long.BYTES;

    private final Arena arena;
    private final MemorySegment entries;
    private long blockBytes;
    private int size;
    private long addressBits;

    /** An empty list; {@link #clear} comes first. */
    @SuppressWarnings("MustBeClosedChecker") // close() closes the arena
    public GatherList() {
        arena = Arena.ofShared();
        entries = arena.allocate(CAPACITY * ENTRY_BYTES, ENTRY_BYTES);
    }

    /**
     * Empties it.
     *
     * @param newBlockBytes the length of each block that comes now
     */
    public void clear(long newBlockBytes) {
        if (newBlockBytes <= 0) {
            throw new IllegalArgumentException("blockBytes=" + newBlockBytes);
        }
        blockBytes = newBlockBytes;
        size = 0;
        addressBits = newBlockBytes;
    }

    /**
     * Adds a block. Sources and targets may lie in any number of spans; no target may overlap a
     * source or another target.
     *
     * @throws IndexOutOfBoundsException when the block leaves its span; nothing is added
     * @throws IllegalStateException when it is full
     */
    public void add(DeviceSpan source, long sourceOffset, DeviceSpan target, long targetOffset) {
        requireRoom(1);
        long from = address("source", source, sourceOffset);
        long to = address("target", target, targetOffset);
        entries.set(JAVA_LONG, size * ENTRY_BYTES, from);
        entries.set(JAVA_LONG, size * ENTRY_BYTES + Long.BYTES, to);
        size++;
        addressBits |= from | to;
    }

    /**
     * Adds blocks of which the caller knows that source and target are mapped from end to end, and
     * that no target overlaps a source or another target.
     *
     * @param addresses of source and target in turn; may hold more
     * @throws IllegalStateException when they do not fit; nothing is added
     */
    public void addChecked(long[] addresses, int blocks) {
        requireRoom(blocks);
        int words = 2 * blocks;
        MemorySegment.copy(addresses, 0, entries, JAVA_LONG, size * ENTRY_BYTES, words);
        long bits = 0;
        for (int i = 0; i < words; i++) {
            bits |= addresses[i];
        }
        size += blocks;
        addressBits |= bits;
    }

    private void requireRoom(int blocks) {
        if (blockBytes == 0) {
            throw new IllegalStateException("gather list has no block length; clear it first");
        }
        if (blocks > CAPACITY - size) {
            throw new IllegalStateException(
                    "gather list is full: %d blocks and %d more, capacity=%d"
                            .formatted(size, blocks, CAPACITY));
        }
    }

    private long address(String side, DeviceSpan span, long offset) {
        if (offset < 0 || offset > span.lengthBytes() - blockBytes) {
            throw new IndexOutOfBoundsException(
                    "gather list refused block %d: %s offsetBytes=%d blockBytes=%d leave %s"
                            .formatted(size, side, offset, blockBytes, span));
        }
        return span.address() + offset;
    }

    /** How many blocks. */
    public int size() {
        return size;
    }

    /** Bytes of all blocks. */
    public long totalBytes() {
        return size * blockBytes;
    }

    long blockBytes() {
        return blockBytes;
    }

    /** The first places, filled or not: source and target of each. */
    MemorySegment places(int count) {
        return entries.asSlice(0, count * ENTRY_BYTES);
    }

    /** What all addresses and the length are multiples of: 16, 4 or 1. */
    int alignmentBytes() {
        return (addressBits & 15) == 0 ? 16 : (addressBits & 3) == 0 ? 4 : 1;
    }

    /** How many pieces of at most {@code pieceBytes} a block has. */
    int piecesPerBlock(long pieceBytes) {
        return Math.toIntExact(Math.ceilDiv(blockBytes, pieceBytes));
    }

    /** How many all blocks have; the kernel counts to 2^31. */
    int pieces(long pieceBytes) {
        long pieces = (long) size * piecesPerBlock(pieceBytes);
        if (pieces > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "gather refused: %d blocks of %d bytes are too much for one launch; use several"
                            .formatted(size, blockBytes));
        }
        return (int) pieces;
    }

    /** Frees its memory. Closing twice is fine; a launch of a closed list is refused. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
