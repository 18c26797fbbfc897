package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** All reads of one rank that are under way. */
final class ActiveReads {
    private final KvTransport transport;
    private final LocalCache local;
    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final long timeoutNanos;
    private final List<ActiveRead> reads = new ArrayList<>();

    ActiveReads(
            KvTransport transport,
            LocalCache local,
            ReadOutcomes outcomes,
            StatisticsRecorder statistics,
            Duration timeout) {
        this.transport = transport;
        this.local = local;
        this.outcomes = outcomes;
        this.statistics = statistics;
        this.timeoutNanos = timeout.toNanos();
    }

    /** Starts a read through {@code source}; a read that cannot start has failed. */
    void start(ReadOrder order, LoadedEngine source, long nowNanos) {
        ActiveRead read = new ActiveRead(order, source, nowNanos);
        reads.add(read);
        try {
            byte[] notification =
                    new Notification.Completion(
                                    order.remote().requestId(), source.mapping().consumers())
                            .encode();
            for (LoadedEngine.SourceRank rank : source.ranks()) {
                if (rank.geometry().repeated()) {
                    tellUnread(rank, notification);
                } else {
                    post(read, rank, notification);
                }
            }
        } catch (ConnectorException
                | TransportException
                | IllegalArgumentException
                | IllegalStateException e) {
            read.fail("could not start: " + e.getMessage());
        }
    }

    /**
     * Drives all reads.
     *
     * @return the engines through which a read has failed
     */
    List<LoadedEngine> progress(long nowNanos) {
        List<LoadedEngine> suspects = new ArrayList<>();
        for (Iterator<ActiveRead> each = reads.iterator(); each.hasNext(); ) {
            ActiveRead read = each.next();
            if (read.failure() == null && nowNanos - read.startedNanos() >= timeoutNanos) {
                read.fail("not done within " + Duration.ofNanos(timeoutNanos));
            }
            boolean over = read.progress(statistics);
            @Nullable String failure = read.failure();
            if (failure != null) {
                suspects.add(read.source());
            }
            if (over) {
                each.remove();
                if (failure == null) {
                    outcomes.done(read.order());
                } else {
                    statistics.failedTransfer();
                    outcomes.failed(read.order(), failure);
                }
            }
        }
        return suspects;
    }

    boolean isEmpty() {
        return reads.isEmpty();
    }

    /** What is under way, for a message. */
    List<String> describe(long nowNanos) {
        return reads.stream()
                .map(
                        read ->
                                "read of request "
                                        + read.order().requestId()
                                        + " from "
                                        + read.source()
                                        + " for "
                                        + Duration.ofNanos(nowNanos - read.startedNanos())
                                        + (read.failure() == null
                                                ? ""
                                                : ", failed but not released: " + read.failure()))
                .toList();
    }

    /** Its blocks are read elsewhere; the holder frees them when its other ranks are done, too. */
    private void tellUnread(LoadedEngine.SourceRank rank, byte[] notification) {
        try {
            transport.notify(rank.peer(), notification);
        } catch (TransportException e) { // the lease ends it
            statistics.failedNotification();
        }
    }

    private void post(ActiveRead read, LoadedEngine.SourceRank rank, byte[] notification) {
        BlockPairs pairs = BlockPairs.of(read.order(), local.regions().regions(), rank.geometry());
        BlockList to = local.blocks(pairs.localPieces());
        read.add(transport.read(to, pairs.to(), rank.blocks(), pairs.from(), notification));
    }
}
