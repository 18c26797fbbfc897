package dev.dormouse.transport.local;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The thread that touches peers' pages, one transfer after the other. Idle, it takes no time. */
final class CopyThread implements AutoCloseable {
    private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    private final Thread thread;
    private volatile boolean stopping;

    /** Starts the thread. */
    CopyThread() {
        thread = Thread.ofPlatform().name("dormouse-copy").daemon().start(this::run);
    }

    /** Copies, after what was submitted before. */
    void submit(HostTransfer transfer) {
        tasks.add(transfer);
    }

    /** Makes a mapping's first touches cheap, a piece whenever a transfer has ended or none is. */
    void populate(PeerMapping mapping) {
        tasks.add(
                () -> {
                    if (mapping.populateMore()) {
                        populate(mapping);
                    }
                });
    }

    /** Ends the thread, which abandons what it is at. Idempotent. */
    @Override
    public void close() {
        stopping = true;
        tasks.add(() -> {});
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        while (!stopping) {
            try {
                tasks.take().run();
            } catch (InterruptedException e) {
                // nobody but close ends this thread
            }
        }
    }
}
