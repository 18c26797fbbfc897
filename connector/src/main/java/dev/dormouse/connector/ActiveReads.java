package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** All reads of one rank that are under way. */
final class ActiveReads {
    private final KvTransport transport;
    private final LocalCache local;
    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final long timeoutNanos;
    private final LongSupplier nanoClock;
    private final List<ActiveTransfer<ReadOrder>> reads = new ArrayList<>();

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
        ActiveTransfer<ReadOrder> read =
                new ActiveTransfer<>(order, source, nowNanos, deadlineNanos);
        reads.add(read);
        try {
            for (LoadedEngine.SourceRank rank : source.ranks()) {
                if (!rank.geometry().repeated()) {
                    post(read, rank);
                }
            }
        } catch (RuntimeException e) { // a read without its transfers must never count as done
            read.fail(Failure.Type.TRANSFER_SETUP_FAILED, "could not start: " + e.getMessage());
        }
    }

    /**
     * Drives all reads.
     *
     * @return the engines through which a read has failed
     */
    List<LoadedEngine> progress(long nowNanos) {
        List<LoadedEngine> suspects = new ArrayList<>();
        for (Iterator<ActiveTransfer<ReadOrder>> each = reads.iterator(); each.hasNext(); ) {
            ActiveTransfer<ReadOrder> read = each.next();
            if (read.failure() == null && nowNanos - read.startedNanos() >= timeoutNanos) {
                read.fail(
                        Failure.Type.TRANSFER_FAILED,
                        "not done within " + Duration.ofNanos(timeoutNanos));
            }
            boolean over = read.progress(statistics, nanoClock);
            @Nullable Failure failure = read.failure();
            if (failure != null) {
                suspects.add(read.peer());
            }
            if (over) {
                each.remove();
                if (failure == null) {
                    outcomes.done(read.order());
                } else {
                    failed(read, failure);
                }
                tellOthers(read);
            } else if (failure != null && read.abandon()) {
                outcomes.abandoned(read.order(), failure);
            }
        }
        return suspects;
    }

    /** A read has failed, and nothing touches its blocks any more. */
    private void failed(ActiveTransfer<ReadOrder> read, Failure failure) {
        if (read.isLate()) {
            statistics.lateTransfer();
        } else {
            statistics.failedTransfer();
        }
        if (read.wasAbandoned()) {
            outcomes.letGo(read.order());
        } else {
            outcomes.failed(read.order(), failure);
        }
    }

    /** A read is over: the holder may free its blocks, also on ranks that no transfer told so. */
    private void tellOthers(ActiveTransfer<ReadOrder> read) {
        for (LoadedEngine.SourceRank rank : read.untold()) {
            if (rank.peer().isConnected()) {
                try {
                    transport.notify(rank.peer(), completion(read));
                } catch (TransportException | IllegalArgumentException e) {
                    statistics.failedNotification();
                    outcomes.untold(read.order(), String.valueOf(e.getMessage()));
                }
            }
        }
    }

    /** What each of the holder's ranks is told once the read is over there. */
    private static byte[] completion(ActiveTransfer<ReadOrder> read) {
        LoadedEngine holder = read.peer();
        return new Notification.Completion(
                        read.order().remote().requestId(),
                        holder.mapping().consumers(),
                        holder.identity().instanceId() != null) // else it was not claimed
                .encode();
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
                                        + read.peer()
                                        + " for "
                                        + Duration.ofNanos(nowNanos - read.startedNanos())
                                        + (read.failure() == null
                                                ? ""
                                                : ", failed but not released: " + read.failure()))
                .toList();
    }

    private void post(ActiveTransfer<ReadOrder> read, LoadedEngine.SourceRank rank) {
        BlockPairs pairs = BlockPairs.of(read.order(), local.regions().regions(), rank.geometry());
        BlockList to = local.blocks(pairs.localPieces());
        if (read.isInTime(nanoClock.getAsLong())) {
            BlockList from = Objects.requireNonNull(rank.blocks());
            read.add(
                    rank,
                    transport.read(to, pairs.local(), from, pairs.remote(), completion(read)));
        }
    }
}
