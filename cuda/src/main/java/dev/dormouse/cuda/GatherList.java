package dev.dormouse.cuda;

/**
 * Which blocks a {@link GatherKernel} copies, each checked. Filled again and again: a launch takes
 * the list along. Used by one thread at a time.
 */
public final class GatherList implements AutoCloseable {
    /** The most blocks: what fits into the 32,764 bytes that the arguments of a launch may have. */
    public static final int CAPACITY = 4088;

    private final GatherPlaces places = new GatherPlaces(CAPACITY);

    /** Of source and target in turn. */
    private final long[] addresses = new long[2 * CAPACITY];

    private long blockBytes;
    private int size;
    private long addressBits;

    /** An empty list; {@link #clear} comes first. */
    public GatherList() {}

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
        addresses[2 * size] = from;
        addresses[2 * size + 1] = to;
        size++;
        addressBits |= from | to;
    }

    /**
     * Adds blocks of which the caller knows that source and target are mapped from end to end, and
     * that no target overlaps a source or another target.
     *
     * @param added of source and target in turn; may hold more
     * @throws IllegalStateException when they do not fit; nothing is added
     */
    public void addChecked(long[] added, int blocks) {
        requireRoom(blocks);
        int words = 2 * blocks;
        System.arraycopy(added, 0, addresses, 2 * size, words);
        long bits = 0;
        for (int i = 0; i < words; i++) {
            bits |= added[i];
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

    /**
     * Blocks as a launch takes them: as many as can go in one, at least one. They hold until the
     * next call.
     *
     * @param first the first of them
     * @throws IllegalStateException when the list is closed
     */
    GatherPlaces places(int first) {
        places.set(addresses, first, size);
        return places;
    }

    /** What all addresses and the length are multiples of: 16, 4 or 1. */
    int alignmentBytes() {
        return (addressBits & 15) == 0 ? 16 : (addressBits & 3) == 0 ? 4 : 1;
    }

    /** How many pieces of at most {@code pieceBytes} a block has. */
    int piecesPerBlock(long pieceBytes) {
        return Math.toIntExact(Math.ceilDiv(blockBytes, pieceBytes));
    }

    /**
     * Passes if the kernel, which counts to 2^31, can count the pieces of all blocks.
     *
     * @throws IllegalArgumentException if they are too many
     */
    void requireCountable(long pieceBytes) {
        if ((long) size * piecesPerBlock(pieceBytes) > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "gather refused: %d blocks of %d bytes are too much for one launch; use several"
                            .formatted(size, blockBytes));
        }
    }

    /** Frees its memory. Closing twice is fine; a launch of a closed list is refused. */
    @Override
    public void close() {
        places.close();
    }
}
