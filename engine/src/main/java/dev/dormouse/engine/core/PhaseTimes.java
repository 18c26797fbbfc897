package dev.dormouse.engine.core;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/** How long the phases of a transition took, in order. */
final class PhaseTimes {
    private static final double NANOS_PER_SECOND = 1e9;

    private final LongSupplier nanoClock;
    private final long startNanos;
    private final Map<String, Double> seconds = new LinkedHashMap<>();
    private long phaseStartNanos;

    /** Starts now. */
    PhaseTimes(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
        this.startNanos = nanoClock.getAsLong();
        this.phaseStartNanos = startNanos;
    }

    /** The phase that began at the end of the last one ends. */
    void ended(String phase) {
        long nowNanos = nanoClock.getAsLong();
        seconds.merge(phase, (nowNanos - phaseStartNanos) / NANOS_PER_SECOND, Double::sum);
        phaseStartNanos = nowNanos;
    }

    Map<String, Double> seconds() {
        return new LinkedHashMap<>(seconds);
    }

    double totalSeconds() {
        return (nanoClock.getAsLong() - startNanos) / NANOS_PER_SECOND;
    }
}
