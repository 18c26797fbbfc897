package dev.dormouse.http;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Bounds the requests that a server reads or serves at a time, and ends with them. Thread-safe. */
public final class RequestPlaces {
    private final int most;
    private final Semaphore free;
    private volatile boolean closed;

    /** All are free, {@code most} of them. */
    public RequestPlaces(int most) {
        this.most = most;
        this.free = new Semaphore(most);
    }

    /** How many there are, taken or not. */
    public int most() {
        return most;
    }

    /** How many are taken. */
    public int taken() {
        return most - free.availablePermits();
    }

    /** Takes a place, which must be {@linkplain #leave left}; false if none is free. */
    public boolean tryTake() {
        return free.tryAcquire();
    }

    /** A place that was taken is free again. */
    public void leave() {
        free.release();
    }

    /** From now on no new request shall come; those that are there go on. */
    public void close() {
        closed = true;
    }

    /** True once it is closed. */
    public boolean isClosed() {
        return closed;
    }

    /** Waits until no place is taken; false if some are still by the limit. */
    public boolean awaitEmpty(Duration limit) throws InterruptedException {
        if (!free.tryAcquire(most, limit.toNanos(), TimeUnit.NANOSECONDS)) {
            return false;
        }
        free.release(most);
        return true;
    }
}
