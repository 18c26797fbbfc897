package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.Histogram;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;

/** Where the engine's thread writes its figures, and any thread reads them. */
final class StatisticsBoard {
    private final TransferHistograms transferSizes = new TransferHistograms();
    private final Map<String, HistogramRecorder> transitionSeconds = new LinkedHashMap<>();
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
        for (String operation : EngineStatistics.TRANSITIONS) { // vLLM's buckets
            transitionSeconds.put(
                    operation, new HistogramRecorder(.01, .1, 1, 10, 30, 60, 120, 300, 600));
        }
    }

    /** Gauges and counters of one moment, named as in {@link EngineStatistics}. */
    record Snapshot(
            int running,
            int waiting,
            int waitingForRemoteKv,
            int heldForRemote,
            int kvBlocksHeld,
            int kvBlocksQuarantined,
            int kvBlocks,
            int kvBlocksFree,
            long promptTokens,
            long computedPromptTokens,
            long remotePromptTokens,
            long remoteFirstTokens,
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
        interval.transfers().forEach(transferSizes::record);
        transfers = transfers.plus(interval.withTransfers(List.of()));
        log.add(interval);
    }

    /** A transition of {@link EngineStatistics#TRANSITIONS} changed something. */
    synchronized void addTransition(String operation, double seconds) {
        Objects.requireNonNull(transitionSeconds.get(operation), operation).record(seconds);
    }

    /** The figures now. */
    synchronized EngineStatistics read() {
        Snapshot now = snapshot;
        return new EngineStatistics(
                now.running,
                now.waiting,
                now.waitingForRemoteKv,
                now.heldForRemote,
                now.kvBlocksHeld,
                now.kvBlocksQuarantined,
                now.kvBlocks,
                now.kvBlocksFree,
                now.promptTokens,
                now.computedPromptTokens,
                now.remotePromptTokens,
                now.remoteFirstTokens,
                now.generatedTokens,
                now.preemptions,
                now.prefixCacheQueries,
                now.prefixCacheHits,
                now.registrationEpoch,
                transfers,
                transferSizes.histograms(),
                histograms(transitionSeconds));
    }

    private static Map<String, Histogram> histograms(Map<String, HistogramRecorder> recorders) {
        Map<String, Histogram> histograms = new LinkedHashMap<>();
        recorders.forEach((operation, recorder) -> histograms.put(operation, recorder.histogram()));
        return histograms;
    }
}
