package dev.dormouse.connector;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads on which handshakes wait for peers: a few, so that one dead peer does not hold up the
 * others, and a bounded queue before them. Rejects what does not fit.
 */
final class HandshakePool implements Executor, AutoCloseable {
    private static final int THREADS = 4;
    private static final int QUEUE = 256;
    private static final long IDLE_SECONDS = 30;

    private final ThreadPoolExecutor threads;

    HandshakePool() {
        threads =
                new ThreadPoolExecutor(
                        THREADS,
                        THREADS,
                        IDLE_SECONDS,
                        TimeUnit.SECONDS,
                        new ArrayBlockingQueue<>(QUEUE),
                        Thread.ofPlatform().name("dormouse-handshake-", 1).daemon().factory());
        threads.allowCoreThreadTimeOut(true);
    }

    @Override
    public void execute(Runnable handshake) {
        threads.execute(handshake);
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }
}
