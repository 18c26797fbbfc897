package dev.dormouse.cli.bench.cuda;

import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import java.util.SplittableRandom;

/**
 * Blocks at even distances in some order.
 *
 * @param order the position of each
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record Blocks(long blockBytes, long strideBytes, int[] order) {
    private static final long READ_BYTES = 64L << 20;
    private static final long READ_BLOCK_BYTES = 64L << 10;

    /** A part of a block. */
    interface Part {
        void take(long offsetBytes, int lengthBytes);
    }

    /** All of a memory's first bytes, in random order. */
    static Blocks shuffled(long bytes, long blockBytes, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int[] order = new int[Math.toIntExact(bytes / blockBytes)];
        for (int i = 0; i < order.length; i++) {
            int other = random.nextInt(i + 1);
            order[i] = order[other];
            order[other] = i;
        }
        return new Blocks(blockBytes, blockBytes, order);
    }

    /** 64 MiB, or all if there is less, from all over a memory. */
    static Blocks spread(long memoryBytes) {
        int count = (int) (Math.min(memoryBytes, READ_BYTES) / READ_BLOCK_BYTES);
        long stride = memoryBytes / count / READ_BLOCK_BYTES * READ_BLOCK_BYTES;
        return new Blocks(READ_BLOCK_BYTES, stride, shuffled(count, 1, 1).order());
    }

    /** As many side by side, in the same order. */
    Blocks dense() {
        return new Blocks(blockBytes, blockBytes, order);
    }

    int count() {
        return order.length;
    }

    long bytes() {
        return blockBytes * order.length;
    }

    /** Where the n-th block is. */
    long offset(int block) {
        return order[block] * strideBytes;
    }

    BlockRow row(long address, int device) {
        return new BlockRow(
                address, blockBytes, strideBytes, order.length, MemoryKind.VRAM, device);
    }

    /** Goes over all bytes by address; blocks side by side count as one. */
    void forEachPart(int mostBytes, Part part) {
        boolean dense = blockBytes == strideBytes;
        int stretches = dense ? 1 : order.length;
        long length = dense ? bytes() : blockBytes;
        for (int stretch = 0; stretch < stretches; stretch++) {
            for (long done = 0; done < length; done += mostBytes) {
                part.take(stretch * strideBytes + done, (int) Math.min(mostBytes, length - done));
            }
        }
    }
}
