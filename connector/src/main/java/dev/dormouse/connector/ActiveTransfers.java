package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * All reads, or all writes, of one rank that are under way.
 *
 * @param <O> what was ordered
 */
final class ActiveTransfers<O extends PeerOrder> {
    /** Starts a transfer's part with one rank of the peer. */
    @FunctionalInterface
    interface Poster<O extends PeerOrder> {
        void post(ActiveTransfer<O> transfer, LoadedEngine.SourceRank rank);
    }

    /** Is told how they end. */
    interface Ends<O extends PeerOrder> {
        /** All of it was done. */
        void done(ActiveTransfer<O> transfer, long nowNanos);

        /** It will have failed, but may still touch its blocks. Told once. */
        void failing(ActiveTransfer<O> transfer, Failure failure, long nowNanos);

        /** It has failed, and nothing touches its blocks any more. */
        void failed(ActiveTransfer<O> transfer, Failure failure, long nowNanos);

        /** It cannot be released, which is tried again. Told once. */
        void unreleased(O order, Failure failure);
    }

    private final Ends<O> ends;
    private final StatisticsRecorder statistics;
    private final long timeoutNanos;
    private final LongSupplier nanoClock;
    private final List<ActiveTransfer<O>> transfers = new ArrayList<>();

    ActiveTransfers(
            Ends<O> ends, StatisticsRecorder statistics, Duration timeout, LongSupplier nanoClock) {
        this.ends = ends;
        this.statistics = statistics;
        this.timeoutNanos = timeout.toNanos();
        this.nanoClock = nanoClock;
    }

    /**
     * Starts a transfer with all ranks of {@code peer}; one that cannot start has failed.
     *
     * @param deadlineNanos when it must have ended
     */
    void start(O order, LoadedEngine peer, long nowNanos, long deadlineNanos, Poster<O> poster) {
        ActiveTransfer<O> transfer = new ActiveTransfer<>(order, peer, nowNanos, deadlineNanos);
        transfers.add(transfer);
        try {
            for (LoadedEngine.SourceRank rank : peer.ranks()) {
                poster.post(transfer, rank);
            }
        } catch (RuntimeException e) { // without all its parts it must never count as done
            transfer.fail(Failure.Type.TRANSFER_SETUP_FAILED, "could not start: " + e.getMessage());
        }
    }

    /**
     * Drives all of them.
     *
     * @return the peers with which one has failed
     */
    List<LoadedEngine> progress(long nowNanos) {
        List<LoadedEngine> suspects = new ArrayList<>();
        for (Iterator<ActiveTransfer<O>> each = transfers.iterator(); each.hasNext(); ) {
            ActiveTransfer<O> transfer = each.next();
            if (transfer.failure() == null && nowNanos - transfer.startedNanos() >= timeoutNanos) {
                transfer.fail(
                        Failure.Type.TRANSFER_FAILED,
                        "not done within " + Duration.ofNanos(timeoutNanos));
            }
            boolean over = transfer.progress(statistics, nanoClock);
            @Nullable String releaseProblem = transfer.takeReleaseProblem();
            if (releaseProblem != null) {
                ends.unreleased(
                        transfer.order(),
                        new Failure(Failure.Type.TRANSFER_RELEASE_FAILED, releaseProblem));
            }
            @Nullable Failure failure = transfer.failure();
            if (failure != null) {
                suspects.add(transfer.peer());
            }
            if (over) {
                each.remove();
                ended(transfer, failure, nowNanos);
            } else if (failure != null && transfer.abandon()) {
                ends.failing(transfer, failure, nowNanos);
            }
        }
        return suspects;
    }

    private void ended(ActiveTransfer<O> transfer, @Nullable Failure failure, long nowNanos) {
        if (failure == null) {
            ends.done(transfer, nowNanos);
        } else {
            if (transfer.isLate()) {
                statistics.lateTransfer();
            } else {
                statistics.failedTransfer();
            }
            ends.failed(transfer, failure, nowNanos);
        }
    }

    boolean isEmpty() {
        return transfers.isEmpty();
    }

    Stream<O> orders() {
        return transfers.stream().map(ActiveTransfer::order);
    }

    /**
     * What is under way, for a message.
     *
     * @param what such as "read of request"
     * @param towards such as "from"
     */
    List<String> describe(String what, String towards, long nowNanos) {
        return transfers.stream()
                .map(transfer -> describe(transfer, what, towards, nowNanos))
                .toList();
    }

    private String describe(
            ActiveTransfer<O> transfer, String what, String towards, long nowNanos) {
        Failure failure = transfer.failure();
        return String.join(
                        " ",
                        what,
                        transfer.order().requestId(),
                        towards,
                        transfer.peer().toString(),
                        "for",
                        Duration.ofNanos(nowNanos - transfer.startedNanos()).toString())
                + (failure == null ? "" : ", failed but not released: " + failure.reason());
    }
}
