package dev.dormouse.transport.local;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** A thread that touches peers' pages, one task after the other. Idle, it takes no time. */
final class CopyThread implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.transport.local");

    private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    private final Thread thread;
    private volatile boolean stopping;

    /** Starts the thread. */
    CopyThread(String name) {
        thread = Thread.ofPlatform().name(name).daemon().start(this::run);
    }

    /** Does something after what was submitted before. */
    void submit(Runnable task) {
        tasks.add(task);
    }

    /** Ends the thread, once it has ended what it is at; what else was submitted is not done. */
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
            } catch (RuntimeException | Error e) {
                LOGGER.log(Level.ERROR, "a task of " + thread.getName() + " failed", e);
            }
        }
    }
}
