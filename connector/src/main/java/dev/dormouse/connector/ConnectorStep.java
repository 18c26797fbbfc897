package dev.dormouse.connector;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
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
 * @param draining whether the engine waits to give its KV cache away, and no hold is renewed: who
 *     reads from it looks at the lease
 * @param revoked held requests that no reader can ask for any more, or may
 * @param revocations registrations of other engines that must not be read through any more
 * @param sideChannelPort where other engines can tell this one of revocations; 0 for nowhere
 * @param push what only a push connector orders
 * @param children of an engine with several connectors, their steps; otherwise empty
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
        int sideChannelPort,
        PushStep push,
        List<ConnectorStep> children) {
    /** A step of an engine with several connectors. */
    static ConnectorStep of(List<ConnectorStep> children) {
        return new ConnectorStep(
                List.of(),
                Set.of(),
                Set.of(),
                Map.of(),
                List.of(),
                0,
                false,
                Set.of(),
                List.of(),
                0,
                PushStep.NONE,
                children);
    }

    /** This step, with what a push connector orders. */
    ConnectorStep with(PushStep ordered) {
        return new ConnectorStep(
                reads,
                inBatch,
                notProcessed,
                leases,
                heartbeats,
                schedulerClockSeconds,
                draining,
                revoked,
                revocations,
                sideChannelPort,
                ordered,
                children);
    }

    /** Copies the collections, and keeps their order, so that a simulation can repeat a step. */
    public ConnectorStep {
        reads = List.copyOf(reads);
        inBatch = copy(inBatch);
        notProcessed = copy(notProcessed);
        leases = Collections.unmodifiableMap(new LinkedHashMap<>(leases));
        heartbeats = List.copyOf(heartbeats);
        revoked = copy(revoked);
        revocations = List.copyOf(revocations);
        children = List.copyOf(children);
    }

    private static Set<String> copy(Set<String> ids) {
        return Collections.unmodifiableSet(new LinkedHashSet<>(ids));
    }
}
