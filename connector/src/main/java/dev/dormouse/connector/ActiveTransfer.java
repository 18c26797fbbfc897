package dev.dormouse.connector;

import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A read or write under way: one transfer per rank of the peer that takes part. It ends when no
 * transfer can touch its blocks any more, not before, however it goes; that it will fail may be
 * known earlier.
 *
 * @param <O> what was ordered
 */
final class ActiveTransfer<O extends PeerOrder> {
    private record Leg(LoadedEngine.SourceRank rank, Transfer transfer) {}

    private final O order;
    private final LoadedEngine peer;
    private final long startedNanos;
    private final long deadlineNanos;
    private final List<Leg> running = new ArrayList<>();
    private final List<Leg> ended = new ArrayList<>();
    private final List<LoadedEngine.SourceRank> told = new ArrayList<>();
    private @Nullable Failure failure;
    private @Nullable String releaseProblem;
    private boolean late;
    private boolean abandoned;

    /**
     * One without transfers.
     *
     * @param deadlineNanos after this, the peer's blocks may be another prompt's
     */
    ActiveTransfer(O order, LoadedEngine peer, long startedNanos, long deadlineNanos) {
        this.order = order;
        this.peer = peer;
        this.startedNanos = startedNanos;
        this.deadlineNanos = deadlineNanos;
        peer.addTransfer(1);
    }

    O order() {
        return order;
    }

    LoadedEngine peer() {
        return peer;
    }

    long startedNanos() {
        return startedNanos;
    }

    void add(LoadedEngine.SourceRank rank, Transfer transfer) {
        running.add(new Leg(rank, transfer));
    }

    /** Why it fails, or null as long as it does not. */
    @Nullable Failure failure() {
        return failure;
    }

    /** True if it fails since its data came when the peer may not have held them any more. */
    boolean isLate() {
        return late;
    }

    /** From now on it only waits for its transfers to let go of the blocks. */
    void fail(Failure.Type type, String reason) {
        if (failure == null) {
            failure = new Failure(type, reason);
        }
    }

    /** False, and it fails, if the peer may not hold the blocks any more at {@code nowNanos}. */
    boolean isInTime(long nowNanos) {
        if (nowNanos - deadlineNanos < 0) {
            return true;
        }
        late |= failure == null;
        fail(
                Failure.Type.TRANSFER_FAILED,
                "its time was over: the peer may not have held the blocks any more");
        return false;
    }

    /** True once: at the first call. */
    boolean abandon() {
        boolean first = !abandoned;
        abandoned = true;
        return first;
    }

    boolean wasAbandoned() {
        return abandoned;
    }

    /** Why a transfer could not be released when that was tried first, once; null if it could. */
    @Nullable String takeReleaseProblem() {
        String problem = releaseProblem;
        if (problem != null && !problem.isEmpty()) {
            releaseProblem = "";
            return problem;
        }
        return null;
    }

    /** The ranks that do not know from a completed transfer that it is over. */
    List<LoadedEngine.SourceRank> untold() {
        return peer.ranks().stream().filter(rank -> !told.contains(rank)).toList();
    }

    /**
     * Drives the transfers.
     *
     * @param nanoClock is asked after a transfer has ended: it was no later than that
     * @return true if nothing touches the blocks any more
     */
    boolean progress(StatisticsRecorder statistics, LongSupplier nanoClock) {
        for (Iterator<Leg> legs = running.iterator(); legs.hasNext(); ) {
            Leg leg = legs.next();
            if (isOver(leg, statistics, nanoClock)) {
                legs.remove();
                ended.add(leg);
            }
        }
        ended.removeIf(leg -> release(leg.transfer()));
        if (!running.isEmpty() || !ended.isEmpty()) {
            return false;
        }
        peer.addTransfer(-1);
        return true;
    }

    private boolean isOver(Leg leg, StatisticsRecorder statistics, LongSupplier nanoClock) {
        TransferState state;
        try {
            state = leg.transfer().poll();
        } catch (TransportException e) {
            fail(Failure.Type.TRANSFER_EXCEPTION, String.valueOf(e.getMessage()));
            return true;
        }
        switch (state) {
            case TransferState.InProgress _ -> {
                return false;
            }
            case TransferState.Done done -> {
                told.add(leg.rank());
                if (isInTime(nanoClock.getAsLong())) {
                    statistics.transfer(
                            new TransferStatistics.TransferSample(
                                    done.duration().toNanos() / 1e9,
                                    done.postDuration().toNanos() / 1e9,
                                    done.bytes(),
                                    done.descriptors()),
                            leg.rank().peer().route());
                }
            }
            case TransferState.Failed failed -> fail(Failure.Type.TRANSFER_FAILED, failed.reason());
        }
        return true;
    }

    private boolean release(Transfer transfer) {
        try {
            return transfer.release();
        } catch (TransportException e) {
            if (releaseProblem == null) {
                releaseProblem = String.valueOf(e.getMessage());
            }
            return false;
        }
    }
}
