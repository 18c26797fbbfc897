package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** All reads of one rank that are under way. */
final class ActiveReads {
    /** Readers of one source rank, as long as both sides have equally many ranks. */
    private static final int CONSUMERS = 1;

    private final KvTransport transport;
    private final LocalCache local;
    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final long timeoutNanos;
    private final LongSupplier nanoClock;
    private final List<ActiveRead> reads = new ArrayList<>();

    ActiveReads(
            KvTransport transport,
            LocalCache local,
            ReadOutcomes outcomes,
            StatisticsRecorder statistics,
            Duration timeout,
            LongSupplier nanoClock) {
        this.transport = transport;
        this.local = local;
        this.outcomes = outcomes;
        this.statistics = statistics;
        this.timeoutNanos = timeout.toNanos();
        this.nanoClock = nanoClock;
    }

    /**
     * Starts a read through {@code source}; a read that cannot start has failed.
     *
     * @param deadlineNanos when it must have ended, see {@link ReadDeadline}
     */
    void start(ReadOrder order, LoadedEngine source, long nowNanos, long deadlineNanos) {
        ActiveRead read = new ActiveRead(order, source, nowNanos, deadlineNanos);
        reads.add(read);
        try {
            for (LoadedEngine.SourceRank rank : source.ranks()) {
                post(read, rank);
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
            boolean over = read.progress(statistics, nanoClock);
            @Nullable String failure = read.failure();
            if (failure != null) {
                suspects.add(read.source());
            }
            if (over) {
                each.remove();
                if (failure == null) {
                    outcomes.done(read.order());
                } else {
                    ended(read, failure);
                }
            } else if (failure != null && read.abandon()) {
                outcomes.abandoned(read.order(), failure);
            }
        }
        return suspects;
    }

    /** A read has failed, and nothing touches its blocks any more: its holder may free its own. */
    private void ended(ActiveRead read, String failure) {
        statistics.failedTransfer();
        if (read.isLate()) {
            statistics.expiredRequest();
        }
        if (read.wasAbandoned()) {
            outcomes.letGo(read.order());
        } else {
            outcomes.failed(read.order(), failure);
        }
        byte[] notNeeded = completion(read.order());
        for (LoadedEngine.SourceRank rank : read.untold()) {
            if (rank.peer().isConnected()) {
                try {
                    transport.notify(rank.peer(), notNeeded);
                } catch (TransportException e) {
                    statistics.failedNotification();
                }
            }
        }
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

    private void post(ActiveRead read, LoadedEngine.SourceRank rank) {
        ReadOrder order = read.order();
        int count = order.localBlocks().size();
        int surplus = order.remoteBlocks().size() - count;
        if (surplus < 0) {
            throw new ConnectorException(
                    "the peer has " + order.remoteBlocks().size() + " blocks, wanted are " + count);
        }
        List<KvCacheRegions.Region> regions = local.regions().regions();
        int[] to = new int[regions.size() * count];
        int[] from = new int[regions.size() * count];
        int toBase = 0;
        int fromBase = 0;
        int at = 0;
        for (int region = 0; region < regions.size(); region++) {
            int toLimit = regions.get(region).blocks();
            int fromLimit = rank.geometry().rows().get(region).count();
            for (int i = 0; i < count; i++) {
                to[at] = toBase + checked("local", order.localBlocks().get(i), toLimit);
                from[at] =
                        fromBase
                                + checked(
                                        "remote", order.remoteBlocks().get(surplus + i), fromLimit);
                at++;
            }
            toBase += toLimit;
            fromBase += fromLimit;
        }
        read.add(rank, transport.read(local.blocks(), to, rank.blocks(), from, completion(order)));
    }

    private static byte[] completion(ReadOrder order) {
        return new Notification.Completion(order.remote().requestId(), CONSUMERS).encode();
    }

    private static int checked(String side, int block, int limit) {
        if (block < 0 || block >= limit) {
            throw new ConnectorException(
                    side + " block " + block + " does not exist; there are " + limit);
        }
        return block;
    }
}
