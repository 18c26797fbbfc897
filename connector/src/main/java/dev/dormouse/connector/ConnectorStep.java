package dev.dormouse.connector;

import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Orders of the scheduler's side to every rank for one step.
 *
 * @param reads blocks to read from other engines
 * @param inBatch requests of this step whose blocks a reader may ask for later
 * @param notProcessed requests of {@code inBatch} that ended without a hand-over
 * @param leases deadlines of requests that are held from now on, in seconds of the scheduler's
 *     clock
 * @param heartbeats requests to renew, grouped by producer
 * @param schedulerClockSeconds the scheduler's clock when the step was made; ranks rebase deadlines
 *     with it
 * @param draining whether the engine waits to give its KV cache away: no hold is renewed then
 */
public record ConnectorStep(
        List<ReadOrder> reads,
        Set<String> inBatch,
        Set<String> notProcessed,
        Map<String, Double> leases,
        List<Heartbeat> heartbeats,
        double schedulerClockSeconds,
        boolean draining) {
    /** A step of an engine that does not drain. */
    public ConnectorStep(
            List<ReadOrder> reads,
            Set<String> inBatch,
            Set<String> notProcessed,
            Map<String, Double> leases,
            List<Heartbeat> heartbeats,
            double schedulerClockSeconds) {
        this(reads, inBatch, notProcessed, leases, heartbeats, schedulerClockSeconds, false);
    }

    /** Copies the collections. */
    public ConnectorStep {
        reads = List.copyOf(reads);
        inBatch = Set.copyOf(inBatch);
        notProcessed = Set.copyOf(notProcessed);
        leases = Map.copyOf(leases);
        heartbeats = List.copyOf(heartbeats);
    }
}
