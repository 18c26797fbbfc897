package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;

/** The worker's half of several connectors in one; each has a transport of its own. */
final class MultiWorker implements WorkerConnector {
    private final List<WorkerConnector> children;

    private final LongSupplier nanoClock;

    MultiWorker(List<WorkerConnector> children, LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
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
        for (int i = 0; i < step.children().size(); i++) {
            children.get(i).start(step.children().get(i));
        }
    }

    @Override
    public void wakeWith(Runnable wake) {
        children.forEach(child -> child.wakeWith(wake));
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
            sent.addAll(report.finishedSending());
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

    /** One after the other, all within the one limit. */
    @Override
    public void prepareRelease(Duration limit) {
        long deadlineNanos = nanoClock.getAsLong() + limit.toNanos();
        children.forEach(child -> child.prepareRelease(left(deadlineNanos)));
    }

    /** In order, all within the one limit; if one cannot, those before it are restored. */
    @Override
    public void releaseKvCaches(Duration limit) {
        long deadlineNanos = nanoClock.getAsLong() + limit.toNanos();
        List<WorkerConnector> done = new ArrayList<>();
        for (WorkerConnector child : children) {
            boolean before = child.isReleased();
            try {
                child.releaseKvCaches(left(deadlineNanos));
            } catch (RuntimeException e) {
                restore(done, e);
                throw e;
            }
            if (!before) {
                done.add(child);
            }
        }
    }

    /** Nothing at the deadline: who has nothing pending needs no time. */
    private Duration left(long deadlineNanos) {
        return Duration.ofNanos(Math.max(0, deadlineNanos - nanoClock.getAsLong()));
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
