package dev.dormouse.transport.local;

/**
 * Where the blocks of a transfer lie, pair by pair. Goes along a row of blocks on each side as long
 * as both last: about a nanosecond per pair.
 */
final class PairAddresses {
    private final BlockPairs pairs;
    private final Row local;
    private final Row remote;
    private final boolean writes;
    private int next;
    private long blockBytes;

    /**
     * From the first pair on.
     *
     * @param writes whether from here to there, or the other way
     */
    PairAddresses(BlockPairs pairs, boolean writes) {
        this.pairs = pairs;
        local = new Row(pairs.local());
        remote = new Row(pairs.remote());
        this.writes = writes;
    }

    /** The row at which one side is; all of its blocks were checked to lie in mapped memory. */
    private static final class Row {
        private final BlockTable blocks;
        private int row;
        private int first;
        private int count;
        private long blockBytes;
        private long strideBytes;
        private long address;

        Row(BlockTable blocks) {
            this.blocks = blocks;
        }

        /** Goes to the row that has a block. */
        void enter(int index) {
            if (index < 0 || index >= blocks.size()) { // changed since it was checked
                throw new IllegalArgumentException("block %d does not exist".formatted(index));
            }
            row = blocks.row(index, row);
            first = blocks.first(row);
            count = blocks.end(row) - first;
            blockBytes = blocks.blockBytes(row);
            strideBytes = blocks.strideBytes(row);
            address = blocks.address(row, first);
        }
    }

    boolean hasNext() {
        return next < pairs.size();
    }

    /**
     * Writes the addresses of the next pairs, of blocks of one length.
     *
     * @param most how many at most
     * @param sources where the address of each one's source goes
     * @param targets where that of its target goes
     * @return how many, at least one
     */
    int fill(int most, long[] sources, long[] targets) {
        long[] ours = writes ? sources : targets;
        long[] theirs = writes ? targets : sources;
        int first = next;
        int end = Math.min(pairs.size(), first + most);
        enterRows();
        blockBytes = local.blockBytes;
        while (next < end && local.blockBytes == blockBytes) {
            next = fillRun(first, end, ours, theirs);
            if (next < end) {
                enterRows();
            }
        }
        return next - first;
    }

    /** The length of each block that {@link #fill} wrote. */
    long blockBytes() {
        return blockBytes;
    }

    private void enterRows() {
        int theirs = pairs.remoteIndices()[next];
        local.enter(pairs.localIndices()[next]);
        remote.enter(theirs);
        if (remote.blockBytes != local.blockBytes) { // changed since it was checked
            throw new IllegalArgumentException(
                    "block %d has %d bytes, not %d"
                            .formatted(theirs, remote.blockBytes, local.blockBytes));
        }
    }

    /**
     * Goes on until one side leaves its row. Everything in locals, which pays.
     *
     * @param first the pair whose addresses come first
     * @return how far that is
     */
    private int fillRun(int first, int end, long[] ours, long[] theirs) {
        long localAddress = local.address;
        long localStride = local.strideBytes;
        long remoteAddress = remote.address;
        long remoteStride = remote.strideBytes;
        int[] localIndices = pairs.localIndices();
        int[] remoteIndices = pairs.remoteIndices();
        int localFirst = local.first;
        int localCount = local.count;
        int remoteFirst = remote.first;
        int remoteCount = remote.count;
        for (int i = next; i < end; i++) {
            int l = localIndices[i] - localFirst;
            int r = remoteIndices[i] - remoteFirst;
            if (Integer.compareUnsigned(l, localCount) >= 0
                    || Integer.compareUnsigned(r, remoteCount) >= 0) {
                return i;
            }
            ours[i - first] = localAddress + localStride * l;
            theirs[i - first] = remoteAddress + remoteStride * r;
        }
        return end;
    }
}
