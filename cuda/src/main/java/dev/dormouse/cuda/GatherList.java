package dev.dormouse.cuda;

/**
 * Which blocks a {@link GatherKernel} copies, each checked. Filled again and again: a launch takes
 * the list along. Used by one thread at a time.
 */
public final class GatherList implements AutoCloseable {
    /** The most blocks: what fits into the 32,764 bytes that the arguments of a launch may have. */
    public static final int CAPACITY = 4088;

    private final long[] sources = new long[CAPACITY];
    private final long[] targets = new long[CAPACITY];
    private final GatherPlaces places = new GatherPlaces(sources, targets);
    private long blockBytes;
    private int size;

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
        sources[size] = from;
        targets[size] = to;
        size++;
    }

    /** Where the source addresses of {@link #addChecked} go, from {@link #size} on. */
    public long[] sources() {
        return sources;
    }

    /** Where the target addresses of {@link #addChecked} go, from {@link #size} on. */
    public long[] targets() {
        return targets;
    }

    /**
     * Adds blocks whose addresses the caller has written, and of which he knows that source and
     * target are mapped from end to end, and that no target overlaps a source or another target.
     *
     * @throws IllegalStateException when they do not fit; nothing is added
     */
    public void addChecked(int blocks) {
        requireRoom(blocks);
        size += blocks;
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

    /** How the blocks from the first one on go in a launch; at least one goes. */
    GatherPlaces places(int first, int most) {
        places.measure(first, Math.min(size - first, most));
        return places;
    }

    /** Frees its memory. Closing twice is fine; a launch of a closed list is refused. */
    @Override
    public void close() {
        places.close();
    }
}
