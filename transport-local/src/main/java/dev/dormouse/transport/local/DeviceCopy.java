package dev.dormouse.transport.local;

import dev.dormouse.cuda.GatherKernel;
import dev.dormouse.cuda.GatherList;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A copy of device memory, queued as a whole: launches over blocks of one length each. */
final class DeviceCopy {
    /**
     * Of this much, a launch has a short list if that has the bytes below: the device is busy for
     * longer than the next launch takes to make, and begins early.
     */
    private static final long BEGINNING_BYTES = 64L << 20;

    private static final long SHORT_LIST_BYTES = 16L << 20;

    private final DeviceCopier copier;
    private final long bytes;
    private final int descriptors;

    /** Guarded by this, as whoever unmaps asks as well. */
    private DeviceCopier.@Nullable End end;

    private DeviceCopy(DeviceCopier copier, BlockPairs pairs) {
        this.copier = copier;
        bytes = pairs.bytes();
        descriptors = pairs.size();
        end = copier.takeEnd();
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

    private synchronized DeviceCopier.End end() {
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
        PairAddresses addresses = new PairAddresses(pairs, writes);
        long launchedBytes = 0;
        int most = GatherKernel.SHORT_LIST;
        while (addresses.hasNext()) {
            launchedBytes += copier.launch(addresses, most);
            most = most(launchedBytes, addresses.blockBytes());
        }
    }

    private static int most(long launchedBytes, long blockBytes) {
        return launchedBytes < BEGINNING_BYTES
                        && blockBytes >= SHORT_LIST_BYTES / GatherKernel.SHORT_LIST
                ? GatherKernel.SHORT_LIST
                : GatherList.CAPACITY;
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

    /** Lets others use its end; once {@link #isDone}. By the thread that launches. */
    synchronized void recycle() {
        if (end != null) {
            copier.recycle(end);
            end = null;
        }
    }
}
