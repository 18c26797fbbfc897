package dev.dormouse.connector;

import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What ended on a rank, or, merged, on all ranks, since the last report.
 *
 * @param finishedSending requests of this engine whose held blocks may be freed: read by all
 *     readers, or their lease ran out
 * @param renewedSending held requests that a reader has renewed, and until when they are held now,
 *     in seconds of the scheduler's clock
 * @param readUnclaimed held requests that readers have read which do not claim, such as vLLM's:
 *     they may be freed if nobody has claimed them
 * @param finishedReceiving requests whose read ended, well or not; their blocks are no longer
 *     touched by any transfer
 * @param failedReceiving those of {@code finishedReceiving} whose blocks hold nothing usable
 * @param abandonedReceiving requests whose read has failed, while a transfer may still write their
 *     blocks: they appear in {@code finishedReceiving} once none can
 * @param failureReasons why reads of {@code failedReceiving} and {@code abandonedReceiving} failed,
 *     for their clients; may lack some
 * @param revoked {@linkplain Revocation#id() revocations} and {@linkplain PushCancel#id()
 *     cancellations of pushes} that are obeyed: nothing reads or will read through what they name,
 *     or writes for whom they name
 * @param statistics counts and samples since the last report
 * @param children of an engine with several connectors, their reports; otherwise empty
 */
public record WorkerReport(
        Set<String> finishedSending,
        Map<String, Double> renewedSending,
        Set<String> readUnclaimed,
        Set<String> finishedReceiving,
        Set<String> failedReceiving,
        Set<String> abandonedReceiving,
        Map<String, String> failureReasons,
        Set<String> revoked,
        TransferStatistics statistics,
        List<WorkerReport> children) {
    /** A report in which nothing was renewed, abandoned or revoked. */
    public WorkerReport(
            Set<String> finishedSending,
            Set<String> finishedReceiving,
            Set<String> failedReceiving,
            TransferStatistics statistics) {
        this(
                finishedSending,
                Map.of(),
                Set.of(),
                finishedReceiving,
                failedReceiving,
                Set.of(),
                Map.of(),
                Set.of(),
                statistics,
                List.of());
    }

    /** Copies the sets, and keeps their order: in it blocks are freed. */
    public WorkerReport {
        finishedSending = copy(finishedSending);
        renewedSending = Map.copyOf(renewedSending);
        readUnclaimed = copy(readUnclaimed);
        finishedReceiving = copy(finishedReceiving);
        failedReceiving = copy(failedReceiving);
        abandonedReceiving = copy(abandonedReceiving);
        failureReasons = Map.copyOf(failureReasons);
        revoked = copy(revoked);
        children = List.copyOf(children);
    }

    private static Set<String> copy(Set<String> ids) {
        return Collections.unmodifiableSet(new LinkedHashSet<>(ids));
    }

    /** True if nothing ended and nothing was counted. */
    public boolean isEmpty() {
        return finishedSending.isEmpty()
                && renewedSending.isEmpty()
                && readUnclaimed.isEmpty()
                && finishedReceiving.isEmpty()
                && abandonedReceiving.isEmpty()
                && revoked.isEmpty()
                && statistics.isEmpty()
                && children.stream().allMatch(WorkerReport::isEmpty);
    }
}
