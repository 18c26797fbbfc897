package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/** The list of blocks as the kernel reads it, in host memory, with every block checked. */
final class GatherTable {
    static final long ENTRY_BYTES = 2L * Long.BYTES;

    private final MemorySegment memory;
    private final int capacity;
    private long blockBytes;
    private int size;
    private long addressBits;

    GatherTable(MemorySegment memory) {
        this.memory = memory;
        this.capacity = Math.toIntExact(memory.byteSize() / ENTRY_BYTES);
    }

    void clear(long newBlockBytes) {
        if (newBlockBytes <= 0) {
            throw new IllegalArgumentException("blockBytes=" + newBlockBytes);
        }
        blockBytes = newBlockBytes;
        size = 0;
        addressBits = newBlockBytes;
    }

    void add(DeviceSpan source, long sourceOffset, DeviceSpan target, long targetOffset) {
        if (size == capacity) {
            throw new IllegalStateException("gather list is full: capacity=" + capacity);
        }
        long from = address("source", source, sourceOffset);
        long to = address("target", target, targetOffset);
        memory.set(JAVA_LONG, size * ENTRY_BYTES, from);
        memory.set(JAVA_LONG, size * ENTRY_BYTES + Long.BYTES, to);
        size++;
        addressBits |= from | to;
    }

    /** Adds checked blocks: source, target, source, target... */
    void addAll(long[] addresses, int blocks) {
        if (blockBytes == 0) {
            throw new IllegalStateException("gather list has no block length; clear it first");
        }
        if (blocks > capacity - size) {
            throw new IllegalStateException("gather list is full: capacity=" + capacity);
        }
        int words = 2 * blocks;
        MemorySegment.copy(addresses, 0, memory, JAVA_LONG, size * ENTRY_BYTES, words);
        long bits = 0;
        for (int i = 0; i < words; i++) {
            bits |= addresses[i];
        }
        size += blocks;
        addressBits |= bits;
    }

    private long address(String side, DeviceSpan span, long offset) {
        if (blockBytes == 0) {
            throw new IllegalStateException("gather list has no block length; clear it first");
        }
        if (offset < 0 || offset > span.lengthBytes() - blockBytes) {
            throw new IndexOutOfBoundsException(
                    "gather list refused block %d: %s offsetBytes=%d blockBytes=%d leave %s"
                            .formatted(size, side, offset, blockBytes, span));
        }
        return span.address() + offset;
    }

    int size() {
        return size;
    }

    int capacity() {
        return capacity;
    }

    long blockBytes() {
        return blockBytes;
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
}
