package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaException;
import org.jspecify.annotations.Nullable;

/** A copy between device memory. All calls are its user's thread's, which sees it end. */
final class DeviceTransfer extends LocalTransfer {
    private @Nullable DeviceCopy copy;

    DeviceTransfer(Request request) {
        super(request);
    }

    /**
     * Queues the whole copy.
     *
     * @param writes whether from here to there, or the other way
     */
    void start(boolean writes, BlockPairs pairs, DeviceCopier copier) {
        DeviceMapping mapping = (DeviceMapping) peer().mapping();
        try {
            if (!mapping.use(() -> copy = DeviceCopy.start(writes, pairs, copier, mapping))) {
                become(failed(endReason()));
            }
        } catch (RuntimeException e) {
            become(failed(e.toString()));
        }
        markPosted();
    }

    @Override
    void advance() {
        DeviceCopy started = copy;
        if (started == null || !isInProgress()) {
            return;
        }
        try {
            if (started.isDone()) {
                started.recycle();
                become(finish(started.bytes(), started.descriptors()));
            }
        } catch (CudaException e) {
            become(failed(e.toString()));
        }
    }
}
