package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The worker's half of several connectors in one; each has a transport of its own. */
final class MultiWorker implements WorkerConnector {
    private final List<WorkerConnector> children;

    /** How many more connectors than one must send a request before it counts as sent. */
    private final Map<String, Integer> extraSends = new HashMap<>();

    MultiWorker(List<WorkerConnector> children) {
        this.children = List.copyOf(children);
        if (children.isEmpty()) {
            throw new ConnectorException("multi connector: it has no connectors");
        }
    }

    @Override
    public void registerKvCaches(KvCacheRegions regions) {
        children.forEach(child -> child.registerKvCaches(regions));
    }

    @Override
    public RankPayload payload() {
        List<RankPayload> payloads = children.stream().map(WorkerConnector::payload).toList();
        return payloads.getFirst().with(payloads);
    }

    @Override
    public void start(ConnectorStep step) {
        step.extraSends().forEach((id, more) -> extraSends.merge(id, more, Integer::sum));
        for (int i = 0; i < step.children().size(); i++) {
            children.get(i).start(step.children().get(i));
        }
    }

    @Override
    public WorkerReport poll() {
        List<WorkerReport> reports = children.stream().map(WorkerConnector::poll).toList();
        Set<String> sent = new HashSet<>();
        Map<String, Double> renewed = new HashMap<>();
        Set<String> received = new HashSet<>();
        Set<String> failed = new HashSet<>();
        Set<String> abandoned = new HashSet<>();
        Map<String, String> reasons = new HashMap<>();
        TransferStatistics statistics = TransferStatistics.NONE;
        for (WorkerReport report : reports) {
            report.finishedSending().stream().filter(this::isLast).forEach(sent::add);
            renewed.putAll(report.renewedSending());
            received.addAll(report.finishedReceiving());
            failed.addAll(report.failedReceiving());
            abandoned.addAll(report.abandonedReceiving());
            reasons.putAll(report.failureReasons());
            statistics = statistics.plus(report.statistics());
        }
        return new WorkerReport(
                sent,
                renewed,
                Set.of(),
                received,
                failed,
                abandoned,
                reasons,
                Set.of(),
                statistics,
                reports);
    }

    /** True for the last completion of a request that several connectors send. */
    private boolean isLast(String id) {
        int more = extraSends.getOrDefault(id, 0);
        if (more > 1) {
            extraSends.put(id, more - 1);
        } else {
            extraSends.remove(id);
        }
        return more == 0;
    }

    @Override
    public void prepareRelease(Duration limit) {
        children.forEach(child -> child.prepareRelease(limit));
    }

    /** In order; if one cannot, those before it are restored. */
    @Override
    public void releaseKvCaches(Duration limit) {
        List<WorkerConnector> done = new ArrayList<>();
        for (WorkerConnector child : children) {
            boolean before = child.isReleased();
            try {
                child.releaseKvCaches(limit);
            } catch (RuntimeException e) {
                restore(done, e);
                throw e;
            }
            if (!before) {
                done.add(child);
            }
        }
    }

    private static void restore(List<WorkerConnector> released, RuntimeException failure) {
        for (WorkerConnector child : released.reversed()) {
            try {
                child.restoreKvCaches();
            } catch (RuntimeException second) {
                failure.addSuppressed(second);
            }
        }
    }

    @Override
    public void restoreKvCaches() {
        children.forEach(WorkerConnector::restoreKvCaches);
    }

    /** True as long as one of them is: then nothing can be published. */
    @Override
    public boolean isReleased() {
        return children.stream().anyMatch(WorkerConnector::isReleased);
    }

    @Override
    public void close() {
        MultiConnector.forAll("close", children, WorkerConnector::close);
    }
}
