package dev.dormouse.http;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Bounds waits: runs an action on thread {@code dormouse-http-timer} unless the wait ends first.
 * Thread-safe.
 */
public final class TimeLimits implements AutoCloseable {
    private final ScheduledThreadPoolExecutor timer =
            new ScheduledThreadPoolExecutor(
                    1, Thread.ofPlatform().daemon().name("dormouse-http-timer").factory());

    /** Starts the thread with the first limit. */
    public TimeLimits() {
        timer.setRemoveOnCancelPolicy(true);
    }

    /**
     * Starts a limit; {@code onExpiry} must not block. Once this object is closed a limit expires
     * at once, since nothing would end the wait any more.
     */
    public Limit start(Duration limit, Runnable onExpiry) {
        AtomicBoolean settled = new AtomicBoolean();
        Runnable expire =
                () -> {
                    if (settled.compareAndSet(false, true)) {
                        onExpiry.run();
                    }
                };
        try {
            return new Limit(
                    settled, timer.schedule(expire, limit.toNanos(), TimeUnit.NANOSECONDS));
        } catch (RejectedExecutionException e) {
            expire.run();
            return new Limit(settled, CompletableFuture.completedFuture(null));
        }
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }

    /** A running limit; after {@link #close} its action does not start any more. */
    public static final class Limit implements AutoCloseable {
        private final AtomicBoolean settled;
        private final Future<?> expiry;

        private Limit(AtomicBoolean settled, Future<?> expiry) {
            this.settled = settled;
            this.expiry = expiry;
        }

        @Override
        public void close() {
            if (settled.compareAndSet(false, true)) {
                expiry.cancel(false);
            }
        }
    }
}
