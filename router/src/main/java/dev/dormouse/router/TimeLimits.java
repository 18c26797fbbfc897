package dev.dormouse.router;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Bounds waits: runs an action on thread {@code dormouse-router-timer} unless the wait ends first.
 * Thread-safe.
 */
final class TimeLimits implements AutoCloseable {
    private final ScheduledThreadPoolExecutor timer =
            new ScheduledThreadPoolExecutor(
                    1, Thread.ofPlatform().daemon().name("dormouse-router-timer").factory());

    TimeLimits() {
        timer.setRemoveOnCancelPolicy(true);
    }

    /**
     * Starts a limit; {@code onExpiry} must not block. Once this object is closed a limit expires
     * at once, since nothing would end the wait any more.
     */
    Limit start(Duration limit, Runnable onExpiry) {
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
    static final class Limit implements AutoCloseable {
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
