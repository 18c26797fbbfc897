package dev.dormouse.model.kernel;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A few threads that share one loop at a time.
 *
 * <p>The caller of {@link #run} works too, so a pool of {@code n} has {@code n - 1} threads of its
 * own, named {@code dormouse-compute-1} and so on. After a loop they spin for {@link #SPIN_NANOS},
 * since the next one of a step usually follows at once, and then park. The caller never waits for a
 * thread that has not joined: a late one finds the loop closed.
 *
 * <p>One thread at a time may call {@link #run} and {@link #close}.
 */
public final class ComputeThreads implements AutoCloseable {
    private static final long SPIN_NANOS = 50_000;
    private static final int SPINS_PER_CLOCK = 32;

    /** State: the loop's number in the upper half, this bit while it is open, threads inside. */
    private static final long OPEN = 1L << 31;

    private static final long INSIDE = OPEN - 1;

    /** A part of a loop. */
    @FunctionalInterface
    public interface Work {
        /**
         * Does the units from {@code from} to before {@code to}.
         *
         * @param thread from 0 to before {@link ComputeThreads#count}; no two threads in a loop
         *     share one
         */
        void run(int from, int to, int thread);
    }

    private final Helper[] helpers;
    private final AtomicLong state = new AtomicLong();
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    private volatile @Nullable Thread waitingCaller;
    private volatile boolean closed;

    // Written before a loop opens and after it has emptied, read by those inside.
    private @Nullable Work work;
    private int units;
    private int chunk;

    /**
     * Starts the threads.
     *
     * @param count threads that work on a loop, its caller among them
     */
    public ComputeThreads(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("compute threads: " + count + ", needs at least 1");
        }
        helpers = new Helper[count - 1];
        for (int i = 0; i < helpers.length; i++) {
            helpers[i] = new Helper(i + 1);
            helpers[i].thread.start();
        }
    }

    /** Threads that work on a loop, its caller among them. */
    public int count() {
        return helpers.length + 1;
    }

    /** Whether every one of the pool's own threads may access memory that {@code test} knows. */
    public boolean allThreads(Predicate<Thread> test) {
        for (Helper helper : helpers) {
            if (!test.test(helper.thread)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Runs a loop and returns when all of it is done.
     *
     * @param units what to do, numbered from 0
     * @param chunk units handed out at once
     * @throws RuntimeException or {@link Error}, the first that a unit threw; the rest of the loop
     *     may not have been done then
     */
    public void run(int units, int chunk, Work work) {
        if (closed) {
            throw new IllegalStateException("run compute threads: they are closed");
        }
        if (helpers.length == 0 || units <= chunk) {
            if (units > 0) {
                work.run(0, units, 0);
            }
            return;
        }
        this.work = work;
        this.units = units;
        this.chunk = chunk;
        next.set(0);
        state.set(((state.get() >>> 32) + 1) << 32 | OPEN);
        for (Helper helper : helpers) {
            if (helper.parked) {
                LockSupport.unpark(helper.thread);
            }
        }
        takeUnits(work, 0);
        state.addAndGet(-OPEN);
        awaitEmpty();
        this.work = null;
        Throwable thrown = failure.getAndSet(null);
        if (thrown instanceof RuntimeException e) {
            throw e;
        } else if (thrown instanceof Error e) {
            throw e;
        }
    }

    private void takeUnits(Work work, int thread) {
        try {
            for (int from = next.getAndAdd(chunk); from < units; from = next.getAndAdd(chunk)) {
                work.run(from, Math.min(units, from + chunk), thread);
            }
        } catch (RuntimeException | Error e) {
            next.set(units);
            failure.compareAndSet(null, e);
        }
    }

    private void awaitEmpty() {
        long start = System.nanoTime();
        for (int spins = 1; (state.get() & INSIDE) != 0; spins++) {
            Thread.onSpinWait();
            if (spins % SPINS_PER_CLOCK == 0 && System.nanoTime() - start > SPIN_NANOS) {
                waitingCaller = Thread.currentThread();
                while ((state.get() & INSIDE) != 0) {
                    LockSupport.park(this);
                }
                waitingCaller = null;
            }
        }
    }

    /** Ends the threads and waits for them. Idempotent. */
    @Override
    public void close() {
        closed = true;
        boolean interrupted = false;
        for (Helper helper : helpers) {
            LockSupport.unpark(helper.thread);
            while (helper.thread.isAlive()) {
                try {
                    helper.thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private final class Helper implements Runnable {
        final Thread thread;
        private final int index;
        private volatile boolean parked;

        Helper(int index) {
            this.index = index;
            thread = Thread.ofPlatform().daemon().name("dormouse-compute-" + index).unstarted(this);
        }

        @Override
        public void run() {
            long seen = 0;
            while (awaitLoopAfter(seen)) {
                seen = state.get() >>> 32;
                @Nullable Work joined = join(seen);
                if (joined != null) {
                    takeUnits(joined, index);
                    if ((state.decrementAndGet() & INSIDE) == 0) {
                        LockSupport.unpark(waitingCaller);
                    }
                }
            }
        }

        private @Nullable Work join(long loop) {
            long now = state.get();
            while (now >>> 32 == loop && (now & OPEN) != 0) {
                if (state.compareAndSet(now, now + 1)) {
                    return work;
                }
                now = state.get();
            }
            return null;
        }

        private boolean awaitLoopAfter(long seen) {
            long start = System.nanoTime();
            for (int spins = 1; state.get() >>> 32 == seen; spins++) {
                if (closed) {
                    return false;
                }
                Thread.onSpinWait();
                if (spins % SPINS_PER_CLOCK == 0 && System.nanoTime() - start > SPIN_NANOS) {
                    parked = true;
                    while (state.get() >>> 32 == seen && !closed) {
                        LockSupport.park(ComputeThreads.this);
                    }
                    parked = false;
                }
            }
            return !closed;
        }
    }
}
