package dev.dormouse.transport.local;

import dev.dormouse.transport.TransportException;

/**
 * Which blocks here go with which blocks of a peer, checked. The indices stay the caller's: used in
 * the call that brought them, and not kept.
 */
final class BlockPairs {
    private final BlockTable local;
    private final int[] localIndices;
    private final BlockTable remote;
    private final int[] remoteIndices;
    private final long bytes;

    /**
     * Pairs blocks.
     *
     * @throws IllegalArgumentException if the indices do not pair, are none, or name no blocks
     * @throws TransportException if blocks that pair differ in length
     */
    BlockPairs(BlockTable local, int[] localIndices, BlockTable remote, int[] remoteIndices) {
        if (localIndices.length == 0 || localIndices.length != remoteIndices.length) {
            throw new IllegalArgumentException(
                    "transfer refused: %d local and %d remote blocks do not pair"
                            .formatted(localIndices.length, remoteIndices.length));
        }
        this.local = local;
        this.localIndices = localIndices;
        this.remote = remote;
        this.remoteIndices = remoteIndices;
        this.bytes = check();
    }

    private long check() {
        long common = local.commonBlockBytes();
        if (common == 0 || common != remote.commonBlockBytes()) {
            return checkEach();
        }
        requireIndices("local", localIndices, local);
        requireIndices("remote", remoteIndices, remote);
        return common * localIndices.length;
    }

    private static void requireIndices(String which, int[] indices, BlockTable blocks) {
        int all = 0;
        int largest = 0;
        for (int index : indices) {
            all |= index; // negative if one is
            largest = Math.max(largest, index);
        }
        if (all < 0 || largest >= blocks.size()) {
            for (int index : indices) {
                int _ = requireIndex(which, index, blocks);
            }
        }
    }

    private long checkEach() {
        long sum = 0;
        int localRow = 0;
        int remoteRow = 0;
        for (int i = 0; i < localIndices.length; i++) {
            localRow = local.row(requireIndex("local", localIndices[i], local), localRow);
            remoteRow = remote.row(requireIndex("remote", remoteIndices[i], remote), remoteRow);
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
            sum += length;
        }
        return sum;
    }

    private static int requireIndex(String which, int index, BlockTable blocks) {
        if (index < 0 || index >= blocks.size()) {
            throw new IllegalArgumentException(
                    "transfer refused: %s block %d does not exist, there are %d"
                            .formatted(which, index, blocks.size()));
        }
        return index;
    }

    int size() {
        return localIndices.length;
    }

    /** Of all pairs, one side. */
    long bytes() {
        return bytes;
    }

    BlockTable local() {
        return local;
    }

    BlockTable remote() {
        return remote;
    }

    /** The local block of each pair; not to be changed. */
    int[] localIndices() {
        return localIndices;
    }

    /** The remote block of each pair; not to be changed. */
    int[] remoteIndices() {
        return remoteIndices;
    }
}
