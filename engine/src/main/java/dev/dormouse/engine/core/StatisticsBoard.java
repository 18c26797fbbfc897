package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.engine.EngineStatistics;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/** Where the engine's thread writes its figures, and any thread reads them. */
final class StatisticsBoard {
    /** Samples that wait for a reader at most; the oldest go first if nobody reads. */
    private static final int MAX_SAMPLES = 10_000;

    private final Deque<TransferStatistics.TransferSample> transferSamples = new ArrayDeque<>();
    private final Deque<EngineStatistics.TransitionSample> transitionSamples = new ArrayDeque<>();
    private TransferStatistics transfers = TransferStatistics.NONE;
    private final Supplier<Snapshot> source;
    private final TransferLog log;
    private Snapshot snapshot;

    /**
     * A board with the figures of now.
     *
     * @param source asked on the engine's thread
     * @param log told of every transfer
     */
    StatisticsBoard(Supplier<Snapshot> source, TransferLog log) {
        this.source = source;
        this.log = log;
        this.snapshot = source.get();
    }

    /** Gauges and counters of one moment, named as in {@link EngineStatistics}. */
    record Snapshot(
            int running,
            int waiting,
            int waitingForRemoteKv,
            int heldForRemote,
            int kvBlocks,
            int kvBlocksFree,
            long promptTokens,
            long computedPromptTokens,
            long remotePromptTokens,
            long generatedTokens,
            long preemptions,
            long prefixCacheQueries,
            long prefixCacheHits,
            long registrationEpoch) {}

    /** Takes the figures of now, on the engine's thread. Before a client is told of an end. */
    synchronized void refresh() {
        snapshot = source.get();
        log.flush();
    }

    synchronized void add(TransferStatistics interval) {
        for (TransferStatistics.TransferSample sample : interval.transfers()) {
            addBounded(transferSamples, sample);
        }
        transfers = withoutSamples(transfers.plus(interval));
        log.add(interval);
    }

    synchronized void addTransition(String operation, double seconds) {
        addBounded(transitionSamples, new EngineStatistics.TransitionSample(operation, seconds));
    }

    /** The figures now; samples are handed out once. */
    synchronized EngineStatistics read() {
        Snapshot now = snapshot;
        return new EngineStatistics(
                now.running,
                now.waiting,
                now.waitingForRemoteKv,
                now.heldForRemote,
                now.kvBlocks,
                now.kvBlocksFree,
                now.promptTokens,
                now.computedPromptTokens,
                now.remotePromptTokens,
                now.generatedTokens,
                now.preemptions,
                now.prefixCacheQueries,
                now.prefixCacheHits,
                now.registrationEpoch,
                transfers,
                takeAll(transferSamples),
                takeAll(transitionSamples));
    }

    private static <T> void addBounded(Deque<T> samples, T sample) {
        if (samples.size() == MAX_SAMPLES) {
            samples.removeFirst();
        }
        samples.addLast(sample);
    }

    private static <T> List<T> takeAll(Deque<T> samples) {
        List<T> taken = new ArrayList<>(samples);
        samples.clear();
        return List.copyOf(taken);
    }

    private static TransferStatistics withoutSamples(TransferStatistics all) {
        return new TransferStatistics(
                List.of(),
                all.failedTransfers(),
                all.failedHandshakes(),
                all.failedNotifications(),
                all.handshakes(),
                all.rehandshakes(),
                all.registrations(),
                all.expiredRequests(),
                all.revokedRequests(),
                all.notificationsAfterExpiry(),
                all.malformedNotifications());
    }
}
