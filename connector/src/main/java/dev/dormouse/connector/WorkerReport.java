package dev.dormouse.connector;

import java.util.Set;

/**
 * What ended on a rank, or, merged, on all ranks, since the last report.
 *
 * @param finishedSending requests of this engine whose held blocks may be freed: read by all
 *     readers, or their lease ran out
 * @param finishedReceiving requests whose read ended, well or not; their blocks are no longer
 *     touched by any transfer
 * @param failedReceiving those of {@code finishedReceiving} whose blocks hold nothing usable
 * @param statistics counts and samples since the last report
 */
public record WorkerReport(
        Set<String> finishedSending,
        Set<String> finishedReceiving,
        Set<String> failedReceiving,
        TransferStatistics statistics) {
    /** Copies the sets. */
    public WorkerReport {
        finishedSending = Set.copyOf(finishedSending);
        finishedReceiving = Set.copyOf(finishedReceiving);
        failedReceiving = Set.copyOf(failedReceiving);
    }

    /** True if nothing ended and nothing was counted. */
    public boolean isEmpty() {
        return finishedSending.isEmpty() && finishedReceiving.isEmpty() && statistics.isEmpty();
    }
}
