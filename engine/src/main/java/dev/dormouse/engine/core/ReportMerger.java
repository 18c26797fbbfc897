package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerReport;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Merges the reports of several ranks: a request counts once every rank has named it. */
final class ReportMerger {
    private final int ranks;
    private final Map<String, Integer> sending = new HashMap<>();
    private final Map<String, Integer> receiving = new HashMap<>();
    private final Set<String> failed = new HashSet<>();

    ReportMerger(int ranks) {
        this.ranks = ranks;
    }

    /** Takes each rank's report since the last call. A failure on one rank fails the request. */
    WorkerReport merge(List<WorkerReport> reports) {
        TransferStatistics statistics = TransferStatistics.NONE;
        Set<String> sent = new HashSet<>();
        Set<String> received = new HashSet<>();
        for (WorkerReport report : reports) {
            statistics = statistics.plus(report.statistics());
            failed.addAll(report.failedReceiving());
            count(report.finishedSending(), sending, sent);
            count(report.finishedReceiving(), receiving, received);
        }
        Set<String> failedNow = new HashSet<>(received);
        failedNow.retainAll(failed);
        failed.removeAll(failedNow);
        return new WorkerReport(sent, received, failedNow, statistics);
    }

    private void count(Set<String> ids, Map<String, Integer> counts, Set<String> complete) {
        for (String id : ids) {
            if (counts.merge(id, 1, Integer::sum) == ranks) {
                counts.remove(id);
                complete.add(id);
            }
        }
    }
}
