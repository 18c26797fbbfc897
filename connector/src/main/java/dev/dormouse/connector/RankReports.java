package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Merges the reports of an engine's ranks: an id comes out once all ranks have reported it, and
 * failed, if any rank failed, together with the last. Single-threaded.
 */
public final class RankReports {
    private final int ranks;
    private final Map<String, BitSet> sending = new HashMap<>();
    private final Map<String, BitSet> unclaimed = new HashMap<>();
    private final Map<String, BitSet> receiving = new HashMap<>();
    private final Map<String, BitSet> revoking = new HashMap<>();
    private final Map<String, String> reasons = new HashMap<>();
    private final Set<String> failed = new HashSet<>();
    private final Map<String, double[]> renewed = new HashMap<>();
    private final List<RankReports> children = new ArrayList<>();

    /** A merger for this number of ranks. */
    public RankReports(int ranks) {
        if (ranks < 1) {
            throw new IllegalArgumentException("rank reports: ranks=" + ranks + " is below 1");
        }
        this.ranks = ranks;
    }

    /**
     * Takes one report of every rank.
     *
     * @param reports in rank order
     * @return what is complete now; statistics are summed
     */
    public WorkerReport merge(List<WorkerReport> reports) {
        if (reports.size() != ranks) {
            throw new IllegalArgumentException(
                    "rank reports: " + reports.size() + " reports of " + ranks + " ranks");
        }
        Set<String> sent = new LinkedHashSet<>();
        Set<String> readUnclaimed = new LinkedHashSet<>();
        Set<String> received = new LinkedHashSet<>();
        Set<String> abandoned = new LinkedHashSet<>();
        Set<String> revoked = new LinkedHashSet<>();
        Map<String, Double> renewals = new HashMap<>();
        TransferStatistics statistics = TransferStatistics.NONE;
        for (int rank = 0; rank < ranks; rank++) {
            WorkerReport report = reports.get(rank);
            failed.addAll(report.failedReceiving());
            report.failureReasons().forEach(reasons::putIfAbsent);
            count(report.finishedSending(), rank, sending, sent);
            count(report.readUnclaimed(), rank, unclaimed, readUnclaimed);
            count(report.finishedReceiving(), rank, receiving, received);
            count(report.revoked(), rank, revoking, revoked);
            abandoned.addAll(report.abandonedReceiving());
            renew(report.renewedSending(), rank, renewals);
            statistics = statistics.plus(report.statistics());
        }
        Set<String> failedNow = new HashSet<>(failed);
        failedNow.retainAll(received);
        failed.removeAll(received);
        abandoned.removeAll(received);
        Map<String, String> reasonsNow = new HashMap<>(reasons);
        reasonsNow.keySet().removeIf(id -> !failedNow.contains(id) && !abandoned.contains(id));
        reasons.keySet().removeAll(received);
        renewed.keySet().removeAll(sent);
        renewals.keySet().removeAll(sent);
        unclaimed.keySet().removeAll(sent);
        return new WorkerReport(
                sent,
                renewals,
                readUnclaimed,
                received,
                failedNow,
                abandoned,
                reasonsNow,
                revoked,
                statistics,
                mergeChildren(reports));
    }

    /** Ranks with several connectors: each connector's reports, merged for themselves. */
    private List<WorkerReport> mergeChildren(List<WorkerReport> reports) {
        int count = reports.getFirst().children().size();
        while (children.size() < count) {
            children.add(new RankReports(ranks));
        }
        List<WorkerReport> merged = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int child = i;
            merged.add(
                    children.get(i)
                            .merge(
                                    reports.stream()
                                            .map(each -> each.children().get(child))
                                            .toList()));
        }
        return merged;
    }

    /** A hold lasts as long as it does on the rank where it ends first. */
    private void renew(Map<String, Double> seconds, int rank, Map<String, Double> complete) {
        seconds.forEach(
                (id, deadline) -> {
                    double[] ofRanks = renewed.computeIfAbsent(id, _ -> noDeadlines());
                    ofRanks[rank] = deadline;
                    double least = Arrays.stream(ofRanks).min().orElseThrow();
                    if (least > Double.NEGATIVE_INFINITY) {
                        complete.put(id, least);
                    }
                });
    }

    private double[] noDeadlines() {
        double[] deadlines = new double[ranks];
        Arrays.fill(deadlines, Double.NEGATIVE_INFINITY);
        return deadlines;
    }

    private void count(Set<String> ids, int rank, Map<String, BitSet> seen, Set<String> complete) {
        for (String id : ids) {
            BitSet reported = seen.computeIfAbsent(id, _ -> new BitSet(ranks));
            reported.set(rank);
            if (reported.cardinality() == ranks) {
                seen.remove(id);
                complete.add(id);
            }
        }
    }
}
