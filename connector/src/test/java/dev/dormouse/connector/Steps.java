package dev.dormouse.connector;

import java.util.List;
import java.util.Map;
import java.util.Set;

/** Steps of engines that neither drain nor push, and that nobody revokes anything from. */
final class Steps {
    private Steps() {}

    static ConnectorStep of(
            List<ReadOrder> reads,
            Set<String> inBatch,
            Set<String> notProcessed,
            Map<String, Double> leases,
            List<Heartbeat> heartbeats,
            double schedulerClockSeconds) {
        return new ConnectorStep(
                reads,
                inBatch,
                notProcessed,
                leases,
                heartbeats,
                schedulerClockSeconds,
                false,
                Set.of(),
                List.of(),
                0,
                PushStep.NONE,
                List.of());
    }
}
