package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.function.LongSupplier;

/** All reads of one rank that are under way. */
final class ActiveReads implements ActiveTransfers.Ends<ReadOrder> {
    private final KvTransport transport;
    private final LocalCache local;
    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final LongSupplier nanoClock;
    private final ActiveTransfers<ReadOrder> reads;

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
        this.nanoClock = nanoClock;
        this.reads = new ActiveTransfers<>(this, statistics, timeout, nanoClock);
    }

    /**
     * Starts a read through {@code source}; a read that cannot start has failed.
     *
     * @param deadlineNanos when it must have ended, see {@link ReadDeadline}
     */
    void start(ReadOrder order, LoadedEngine source, long nowNanos, long deadlineNanos) {
        reads.start(order, source, nowNanos, deadlineNanos, this::post);
    }

    /** See {@link ActiveTransfers#progress}. */
    List<LoadedEngine> progress(long nowNanos) {
        return reads.progress(nowNanos);
    }

    @Override
    public void done(ActiveTransfer<ReadOrder> read, long nowNanos) {
        outcomes.done(read.order());
        tellOthers(read);
    }

    @Override
    public void failing(ActiveTransfer<ReadOrder> read, Failure failure, long nowNanos) {
        outcomes.abandoned(read.order(), failure);
    }

    @Override
    public void failed(ActiveTransfer<ReadOrder> read, Failure failure, long nowNanos) {
        if (read.wasAbandoned()) {
            outcomes.letGo(read.order());
        } else {
            outcomes.failed(read.order(), failure);
        }
        tellOthers(read);
    }

    @Override
    public void unreleased(ReadOrder order, Failure failure) {
        outcomes.note(order, failure);
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
        return reads.describe("read of request", "from", nowNanos);
    }

    private void post(ActiveTransfer<ReadOrder> read, LoadedEngine.SourceRank rank) {
        if (rank.geometry().repeated()) { // another rank is read instead
            return;
        }
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
