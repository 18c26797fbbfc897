package dev.dormouse.transport.local;

import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.GatherList;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A copy of device memory. Each piece is one launch over blocks of one length; while it runs, the
 * next one's list is made.
 */
final class DeviceCopy extends CopyPlan {
    /** Of the first launch, so that it starts soon; each further one has twice as much. */
    private static final long FIRST_BYTES = 64L << 20;

    /** Of a launch: whoever wants to unmap waits for two at most, about 1 ms within an H200. */
    private static final long MAX_BYTES = 1L << 30;

    private final boolean writes;
    private final BlockPairs pairs;
    private final DeviceCopier copier;
    private final Side local;
    private final Side remote;
    private long pieceBytes = FIRST_BYTES;
    private @Nullable GatherList list;
    private int next;

    /**
     * Starts nothing.
     *
     * @param writes whether from here to there, or the other way
     */
    DeviceCopy(boolean writes, BlockPairs pairs, DeviceCopier copier) {
        super(pairs.bytes());
        this.writes = writes;
        this.pairs = pairs;
        this.copier = copier;
        this.local = new Side(pairs.local());
        this.remote = new Side(pairs.remote());
    }

    /** The row at which one side is. */
    private static final class Side {
        private final BlockTable blocks;
        private int row;
        private DeviceSpan span;

        Side(BlockTable blocks) {
            this.blocks = blocks;
            this.span = blocks.span(0);
        }

        /** Goes to a block. */
        long offset(int index) {
            int found = blocks.row(index, row);
            if (found != row) {
                row = found;
                span = blocks.span(found);
            }
            return blocks.offset(found, index);
        }

        long blockBytes() {
            return blocks.blockBytes(row);
        }
    }

    @Override
    int descriptors() {
        return pairs.size();
    }

    @Override
    boolean isDone() {
        return next == pairs.size();
    }

    @Override
    void prepare() {
        GatherList filled = copier.nextList();
        long _ = local.offset(pairs.localIndex(next));
        long blockBytes = local.blockBytes();
        filled.clear(blockBytes);
        long count = Math.clamp(pieceBytes / blockBytes, 1, DeviceCopier.MAX_BLOCKS);
        int end = (int) Math.min(pairs.size(), next + count);
        while (next < end) {
            long here = local.offset(pairs.localIndex(next));
            if (local.blockBytes() != blockBytes) {
                break;
            }
            long there = remote.offset(pairs.remoteIndex(next));
            if (writes) {
                filled.add(local.span, here, remote.span, there);
            } else {
                filled.add(remote.span, there, local.span, here);
            }
            next++;
        }
        list = filled;
        pieceBytes = Math.min(MAX_BYTES, 2 * pieceBytes);
    }

    @Override
    void copyPiece() {
        copier.launch(Objects.requireNonNull(list));
    }

    @Override
    void await() {
        copier.await();
    }
}
