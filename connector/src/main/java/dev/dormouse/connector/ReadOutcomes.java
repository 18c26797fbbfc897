package dev.dormouse.connector;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The reads that ended since the last report. */
final class ReadOutcomes {
    private final TransferFailureLog log;
    private final Set<String> finished = new HashSet<>();
    private final Set<String> failed = new HashSet<>();
    private final Set<String> abandoned = new HashSet<>();
    private final Map<String, String> reasons = new HashMap<>();

    ReadOutcomes(TransferFailureLog log) {
        this.log = log;
    }

    void done(ReadOrder order) {
        if (order.awaited()) {
            finished.add(order.requestId());
        }
    }

    /** It has failed, but a transfer may still touch its blocks; {@link #letGo} comes later. */
    void abandoned(ReadOrder order, Failure failure) {
        log.request(
                new Failure(
                        failure.type(),
                        failure.reason() + "; a transfer may still write its blocks"),
                order);
        if (order.awaited()) {
            abandoned.add(order.requestId());
            reasons.put(order.requestId(), failure.reason());
        }
    }

    void failed(ReadOrder order, Failure failure) {
        log.request(failure, order);
        letGo(order);
        if (order.awaited()) {
            reasons.put(order.requestId(), failure.reason());
        }
    }

    /** The holder could not be told that its blocks are not needed any more; its lease will end. */
    void untold(ReadOrder order, String reason) {
        note(order, new Failure(Failure.Type.NOTIFICATION_FAILED, reason));
    }

    /** Something failed that does not decide how the read ends. */
    void note(ReadOrder order, Failure failure) {
        log.request(failure, order);
    }

    /** What was abandoned has ended. */
    void letGo(ReadOrder order) {
        if (order.awaited()) {
            abandoned.remove(order.requestId());
            finished.add(order.requestId());
            failed.add(order.requestId());
        }
    }

    /** A report of these outcomes, which are forgotten then. */
    WorkerReport take(
            Set<String> finishedSending,
            Map<String, Double> renewedSending,
            Set<String> readUnclaimed,
            Set<String> revoked,
            TransferStatistics statistics) {
        WorkerReport report =
                new WorkerReport(
                        finishedSending,
                        renewedSending,
                        readUnclaimed,
                        finished,
                        failed,
                        abandoned,
                        reasons,
                        revoked,
                        statistics,
                        List.of());
        reasons.clear();
        abandoned.clear();
        finished.clear();
        failed.clear();
        return report;
    }
}
