package dev.dormouse.connector;

import java.util.concurrent.TimeUnit;

/**
 * How long a peer that was found invalid is left alone: not at all the first time, then one second
 * and doubling up to a minute; a minute of health forgives. vLLM's figures.
 */
final class BackOff {
    private static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(60);

    private long delayNanos;
    private long untilNanos;
    private long lastNanos;
    private boolean used;

    /** The peer was found invalid. */
    void strike(long nowNanos) {
        if (!used || nowNanos - lastNanos >= MAX_NANOS) {
            delayNanos = 0;
        } else {
            delayNanos = Math.min(MAX_NANOS, Math.max(FIRST_NANOS, 2 * delayNanos));
        }
        used = true;
        lastNanos = nowNanos;
        untilNanos = nowNanos + delayNanos;
    }

    boolean isActive(long nowNanos) {
        return used && untilNanos - nowNanos > 0;
    }

    /** True if nothing needs to be remembered. */
    boolean isForgiven(long nowNanos) {
        return !used || nowNanos - lastNanos >= MAX_NANOS;
    }
}
