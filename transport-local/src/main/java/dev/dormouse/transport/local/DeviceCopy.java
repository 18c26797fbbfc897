package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaEvent;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A copy of device memory, queued as a whole: launches over blocks of one length, of which the
 * first is short, so that the device works while the next ones are made.
 */
final class DeviceCopy {
    /** Of the first launch; the making of a further one takes about as long as its copy. */
    private static final long FIRST_BYTES = 16L << 20;

    private static final int GROWTH = 4;

    /** Of a launch, about 0.5 ms within an H200. */
    private static final long MAX_BYTES = 1L << 30;

    private final DeviceCopier copier;
    private final long bytes;
    private final int descriptors;

    /** Guarded by this, as whoever unmaps asks as well. */
    private @Nullable CudaEvent end;

    private DeviceCopy(DeviceCopier copier, BlockPairs pairs) {
        this.copier = copier;
        bytes = pairs.bytes();
        descriptors = pairs.size();
        end = copier.takeEvent();
    }

    /**
     * Starts to copy. Both sides must be mapped until {@link #isDone}.
     *
     * @param writes whether from here to there, or the other way
     * @throws RuntimeException if the device refuses; some of it may be copied, none is any more
     */
    static DeviceCopy start(
            boolean writes, BlockPairs pairs, DeviceCopier copier, DeviceMapping mapping) {
        DeviceCopy copy = new DeviceCopy(copier, pairs);
        try {
            launchAll(writes, pairs, copier);
            copier.mark(copy.end());
            mapping.started(copy);
            return copy;
        } catch (RuntimeException e) {
            copy.endAfter(e);
            throw e;
        }
    }

    private synchronized CudaEvent end() {
        return Objects.requireNonNull(end);
    }

    private void endAfter(RuntimeException failure) {
        try {
            copier.synchronize();
            recycle();
        } catch (RuntimeException e) { // the device does nothing any more
            failure.addSuppressed(e);
        }
    }

    private static void launchAll(boolean writes, BlockPairs pairs, DeviceCopier copier) {
        Side local = new Side(pairs.local());
        Side remote = new Side(pairs.remote());
        long launchBytes = FIRST_BYTES;
        int next = 0;
        while (next < pairs.size()) {
            local.enter(pairs.localIndex(next));
            long blockBytes = local.blockBytes;
            long most = Math.clamp(launchBytes / blockBytes, 1, DeviceCopier.MAX_BLOCKS);
            int end = (int) Math.min(pairs.size(), next + most);
            int filled =
                    writes
                            ? fill(pairs, next, end, local, 0, remote, 1, copier.addresses())
                            : fill(pairs, next, end, local, 1, remote, 0, copier.addresses());
            copier.launch(blockBytes, filled);
            next += filled;
            launchBytes = Math.min(MAX_BYTES, GROWTH * launchBytes);
        }
    }

    /** The row at which one side is; all of its blocks were checked to lie in mapped memory. */
    private static final class Side {
        private final BlockTable blocks;
        private int row;
        private int first;
        private int end;
        private long blockBytes;
        private long strideBytes;

        /** Where block 0 would be if the row went back that far. */
        private long origin;

        Side(BlockTable blocks) {
            this.blocks = blocks;
        }

        /** Goes to the row that has a block. */
        void enter(int index) {
            if (index < 0 || index >= blocks.size()) { // changed since it was checked
                throw new IllegalArgumentException("block %d does not exist".formatted(index));
            }
            row = blocks.row(index, row);
            first = blocks.first(row);
            end = blocks.end(row);
            blockBytes = blocks.blockBytes(row);
            strideBytes = blocks.strideBytes(row);
            origin = blocks.address(row, first) - strideBytes * first;
        }

        boolean has(int index) {
            return index >= first && index < end;
        }

        long address(int index) {
            return origin + strideBytes * index;
        }
    }

    /**
     * Writes pairs' addresses.
     *
     * @param here at which of each two places the local block's goes, {@code there} the remote
     *     one's
     * @return how many until {@code end} have the length of the first
     */
    private static int fill(
            BlockPairs pairs,
            int from,
            int end,
            Side local,
            int here,
            Side remote,
            int there,
            long[] addresses) {
        long blockBytes = local.blockBytes;
        for (int i = from; i < end; i++) {
            int ours = pairs.localIndex(i);
            int theirs = pairs.remoteIndex(i);
            if (!local.has(ours)) {
                local.enter(ours);
            }
            if (!remote.has(theirs)) {
                remote.enter(theirs);
            }
            if (local.blockBytes != blockBytes) {
                return i - from;
            }
            if (remote.blockBytes != blockBytes) { // changed since it was checked
                throw new IllegalArgumentException(
                        "block %d has %d bytes, not %d"
                                .formatted(theirs, remote.blockBytes, blockBytes));
            }
            int at = 2 * (i - from);
            addresses[at + here] = local.address(ours);
            addresses[at + there] = remote.address(theirs);
        }
        return end - from;
    }

    /** Bytes of all blocks. */
    long bytes() {
        return bytes;
    }

    /** How many blocks. */
    int descriptors() {
        return descriptors;
    }

    /**
     * Whether all is copied. Never waits.
     *
     * @throws dev.dormouse.cuda.CudaException if the device failed
     */
    synchronized boolean isDone() {
        return end == null || end.hasPassed();
    }

    /** Lets others use its event; once {@link #isDone}. By the thread that launches. */
    synchronized void recycle() {
        if (end != null) {
            copier.recycle(end);
            end = null;
        }
    }
}
