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
 * @param revoked held requests that no reader can ask for any more, or may
 * @param revocations registrations of other engines that must not be read through any more
 * @param sideChannelPort where other engines can tell this one of revocations; 0 for nowhere
 */
public record ConnectorStep(
        List<ReadOrder> reads,
        Set<String> inBatch,
        Set<String> notProcessed,
        Map<String, Double> leases,
        List<Heartbeat> heartbeats,
        double schedulerClockSeconds,
        boolean draining,
        Set<String> revoked,
        List<Revocation> revocations,
        int sideChannelPort) {
    /** A step of an engine that neither drains nor is told of revocations. */
    public ConnectorStep(
            List<ReadOrder> reads,
            Set<String> inBatch,
            Set<String> notProcessed,
            Map<String, Double> leases,
            List<Heartbeat> heartbeats,
            double schedulerClockSeconds) {
        this(
                reads,
                inBatch,
                notProcessed,
                leases,
                heartbeats,
                schedulerClockSeconds,
                false,
                Set.of(),
                List.of(),
                0);
    }

    /** Copies the collections. */
    public ConnectorStep {
        reads = List.copyOf(reads);
        inBatch = Set.copyOf(inBatch);
        notProcessed = Set.copyOf(notProcessed);
        leases = Map.copyOf(leases);
        heartbeats = List.copyOf(heartbeats);
        revoked = Set.copyOf(revoked);
        revocations = List.copyOf(revocations);
    }
}
