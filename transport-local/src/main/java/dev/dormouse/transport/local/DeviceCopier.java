package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaEvent;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.GatherKernel;
import dev.dormouse.cuda.GatherList;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * An agent's stream on its device, on which all copies run one after the other, and what is used
 * for them again and again. The agent's user launches; {@link #await} is for all threads.
 */
final class DeviceCopier implements AutoCloseable {
    /** Blocks of one launch: 1 GiB of 16 KiB; a list takes 1 MiB of the host and of the device. */
    static final int MAX_BLOCKS = 1 << 16;

    /** Launches that may be queued; who wants to launch one more waits for the first of them. */
    private static final int LISTS = 8;

    private static final long AWAIT_NANOS = 20_000;

    private final CudaContext context;
    private final List<AutoCloseable> owned = new ArrayList<>();
    private final List<GatherList> lists = new ArrayList<>();
    private final Deque<CudaEvent> idleEvents = new ArrayDeque<>();
    private final long[] addresses = new long[2 * MAX_BLOCKS];
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
                idleEvents.add(own(CudaEvent.create(context)));
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

    /** Room for the addresses of one launch's blocks, source and target in turn. */
    long[] addresses() {
        return addresses;
    }

    /**
     * Queues a copy of blocks whose addresses lie in {@link #addresses}; it starts at once if
     * nothing runs.
     */
    void launch(long blockBytes, int blocks) {
        GatherList list = lists.get(next);
        next = (next + 1) % LISTS;
        list.awaitReusable();
        list.clear(blockBytes);
        list.addChecked(addresses, blocks);
        kernel.copy(stream, list);
    }

    /** An event to {@link #mark} with, the caller's until {@link #recycle}. */
    CudaEvent takeEvent() {
        CudaEvent event = idleEvents.poll();
        return event == null ? own(CudaEvent.create(context)) : event;
    }

    /** Lets the event pass when all is copied that was launched before. */
    void mark(CudaEvent event) {
        stream.record(event);
    }

    /** Waits until nothing is copied; launches wait, too. */
    void synchronize() {
        stream.synchronize();
    }

    /** Takes an event back. */
    void recycle(CudaEvent event) {
        idleEvents.push(event);
    }

    /**
     * Waits until a copy, and with it all that were launched before it, is done. Holds nothing that
     * launches need meanwhile.
     */
    void await(@Nullable DeviceCopy copy) {
        while (copy != null && !copy.isDone()) {
            LockSupport.parkNanos(AWAIT_NANOS);
        }
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
