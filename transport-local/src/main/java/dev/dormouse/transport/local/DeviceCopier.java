package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.GatherKernel;
import dev.dormouse.cuda.GatherList;
import java.util.ArrayList;
import java.util.List;

/**
 * An agent's stream on its device, on which all copies run, and the lists of blocks that are in use
 * in turn. The copying thread fills and launches; {@link #await} is for all threads.
 */
final class DeviceCopier implements AutoCloseable {
    /** Blocks of one launch: 1 GiB of 16 KiB; a list takes 1 MiB of the host and of the device. */
    static final int MAX_BLOCKS = 1 << 16;

    private static final int LISTS = 2;

    private final CudaContext context;
    private final List<AutoCloseable> owned = new ArrayList<>();
    private final List<GatherList> lists = new ArrayList<>();
    private final GatherKernel kernel;
    private final CudaStream stream;
    private int next;

    /**
     * Compiles or loads the kernel.
     *
     * @throws dev.dormouse.cuda.CudaException if the device refuses; nothing is kept
     */
    DeviceCopier(LocalDevice device) {
        context = device.context();
        try {
            kernel = own(GatherKernel.load(context, device.kernels()));
            stream = own(CudaStream.create(context));
            for (int i = 0; i < LISTS; i++) {
                lists.add(own(GatherList.allocate(context, MAX_BLOCKS)));
            }
        } catch (RuntimeException e) {
            closeAfter(e);
            throw e;
        }
    }

    private <T extends AutoCloseable> T own(T part) {
        owned.addFirst(part);
        return part;
    }

    CudaContext context() {
        return context;
    }

    /** A list that no launch reads; waits for the one before the last. */
    GatherList nextList() {
        GatherList list = lists.get(next);
        next = (next + 1) % LISTS;
        list.awaitReusable();
        return list;
    }

    /** Starts to copy. */
    void launch(GatherList list) {
        kernel.copy(stream, list);
    }

    /** Waits until everything is copied that was started before. */
    void await() {
        stream.synchronize();
    }

    /** To be called when nobody copies. Idempotent. */
    @Override
    public void close() {
        RuntimeException failure = new IllegalStateException("close the device's part failed");
        closeAfter(failure);
        if (failure.getSuppressed().length > 0) {
            throw failure;
        }
    }

    private void closeAfter(RuntimeException failure) {
        for (AutoCloseable part : owned) {
            try {
                part.close();
            } catch (Exception e) {
                failure.addSuppressed(e);
            }
        }
        owned.clear();
    }
}
