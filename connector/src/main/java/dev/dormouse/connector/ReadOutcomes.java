package dev.dormouse.connector;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** The reads that ended since the last report. */
final class ReadOutcomes {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final Set<String> finished = new HashSet<>();
    private final Set<String> failed = new HashSet<>();
    private final Set<String> abandoned = new HashSet<>();

    void done(ReadOrder order) {
        if (order.awaited()) {
            finished.add(order.requestId());
        }
    }

    /** It has failed, but a transfer may still touch its blocks; {@link #letGo} comes later. */
    void abandoned(ReadOrder order, String reason) {
        log(order, reason + "; a transfer may still write its blocks");
        if (order.awaited()) {
            abandoned.add(order.requestId());
        }
    }

    void failed(ReadOrder order, String reason) {
        log(order, reason);
        letGo(order);
    }

    /** What was abandoned has ended. */
    void letGo(ReadOrder order) {
        if (order.awaited()) {
            abandoned.remove(order.requestId());
            finished.add(order.requestId());
            failed.add(order.requestId());
        }
    }

    private static void log(ReadOrder order, String reason) {
        RemoteSource remote = order.remote();
        LOG.log(
                System.Logger.Level.WARNING,
                "KV read failed: {0}; request={1} remoteEngine={2} remoteRequest={3}"
                        + " address={4}:{5} epoch={6} localBlocks={7} remoteBlocks={8}",
                reason,
                order.requestId(),
                Excerpt.of(remote.engineId()),
                Excerpt.of(remote.requestId()),
                remote.host(),
                Integer.toString(remote.port()),
                String.valueOf(remote.epoch()),
                order.localBlocks().size(),
                order.remoteBlocks().size());
    }

    /** A report of these outcomes, which are forgotten then. */
    WorkerReport take(
            Set<String> finishedSending,
            Map<String, Double> renewedSending,
            Set<String> revoked,
            TransferStatistics statistics) {
        WorkerReport report =
                new WorkerReport(
                        finishedSending,
                        renewedSending,
                        finished,
                        failed,
                        abandoned,
                        revoked,
                        statistics);
        abandoned.clear();
        finished.clear();
        failed.clear();
        return report;
    }
}
