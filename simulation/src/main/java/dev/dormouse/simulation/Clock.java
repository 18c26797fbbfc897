package dev.dormouse.simulation;

import java.time.Duration;
import java.time.Instant;

/** The world's time, which passes only when the simulation says so. */
final class Clock {
    private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

    private long nowNanos;

    long nanoTime() {
        return nowNanos;
    }

    /**
     * What every machine's calendar says; their nano clocks have offsets, the calendar has none.
     */
    Instant instant() {
        return START.plusNanos(nowNanos);
    }

    void advance(Duration duration) {
        nowNanos += duration.toNanos();
    }
}
