package dev.dormouse.testkit;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waits for a condition with a deadline, and says what was seen when it never came. */
public final class Await {
    private static final long POLL_MILLIS = 2;

    private Await() {}

    /**
     * Returns as soon as {@code condition} holds.
     *
     * @param what the awaited fact, for the failure's message
     * @param limit how long to wait; generous, since it only bounds a failing test
     * @param seen describes the state at the end of the wait
     * @throws AssertionError when {@code limit} passes first
     */
    public static void until(
            String what, Duration limit, BooleanSupplier condition, Supplier<?> seen) {
        long deadlineNanos = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadlineNanos > 0) {
                throw new AssertionError(
                        "never saw: " + what + " within " + limit + "; last seen: " + seen.get());
            }
            pause();
        }
    }

    /**
     * As {@link #until(String, Duration, BooleanSupplier, Supplier)}, with 30 seconds and nothing
     * more to say.
     */
    public static void until(String what, BooleanSupplier condition) {
        until(what, Duration.ofSeconds(30), condition, () -> "the condition was false");
    }

    private static void pause() {
        try {
            Thread.sleep(POLL_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting", e);
        }
    }
}
