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
 * A read under way: one transfer per source rank that is read. It ends when no transfer can touch
 * its blocks any more, not before, however it goes; that it will fail may be known earlier.
 */
final class ActiveRead {
    private record Leg(LoadedEngine.SourceRank rank, Transfer transfer) {}

    private final ReadOrder order;
    private final LoadedEngine source;
    private final long startedNanos;
    private final long deadlineNanos;
    private final List<Leg> running = new ArrayList<>();
    private final List<Leg> ended = new ArrayList<>();
    private final List<LoadedEngine.SourceRank> told = new ArrayList<>();
    private @Nullable String failure;
    private boolean late;
    private boolean abandoned;

    /**
     * A read without transfers.
     *
     * @param deadlineNanos after this, what it brings may be another prompt's
     */
    ActiveRead(ReadOrder order, LoadedEngine source, long startedNanos, long deadlineNanos) {
        this.order = order;
        this.source = source;
        this.startedNanos = startedNanos;
        this.deadlineNanos = deadlineNanos;
        source.addReadInFlight(1);
    }

    ReadOrder order() {
        return order;
    }

    LoadedEngine source() {
        return source;
    }

    long startedNanos() {
        return startedNanos;
    }

    void add(LoadedEngine.SourceRank rank, Transfer transfer) {
        running.add(new Leg(rank, transfer));
    }

    /** Why it fails, or null as long as it does not. */
    @Nullable String failure() {
        return failure;
    }

    /** True if it fails since its data came when the peer may not have held them any more. */
    boolean isLate() {
        return late;
    }

    /** From now on it only waits for its transfers to let go of the blocks. */
    void fail(String reason) {
        if (failure == null) {
            failure = reason;
        }
    }

    /** False, and it fails, if the peer may not hold the blocks any more at {@code nowNanos}. */
    boolean isInTime(long nowNanos) {
        if (nowNanos - deadlineNanos < 0) {
            return true;
        }
        late |= failure == null;
        fail("its time was over: the peer may not have held the blocks any more");
        return false;
    }

    /** What each of the holder's ranks is told once the read is over there. */
    byte[] completion() {
        return new Notification.Completion(order.remote().requestId(), source.mapping().consumers())
                .encode();
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

    /** The ranks that do not know from a completed transfer that the read is over. */
    List<LoadedEngine.SourceRank> untold() {
        return source.ranks().stream().filter(rank -> !told.contains(rank)).toList();
    }

    /**
     * Drives the transfers.
     *
     * @param nanoClock is asked after a transfer has ended: the read was no later than that
     * @return true if nothing touches the blocks any more
     */
    boolean progress(StatisticsRecorder statistics, LongSupplier nanoClock) {
        for (Iterator<Leg> legs = running.iterator(); legs.hasNext(); ) {
            Leg leg = legs.next();
            switch (poll(leg.transfer())) {
                case TransferState.InProgress _ -> {}
                case TransferState.Done done -> {
                    told.add(leg.rank());
                    legs.remove();
                    ended.add(leg);
                    if (isInTime(nanoClock.getAsLong())) {
                        statistics.transfer(
                                new TransferStatistics.TransferSample(
                                        done.duration().toNanos() / 1e9,
                                        done.postDuration().toNanos() / 1e9,
                                        done.bytes(),
                                        done.descriptors()));
                    }
                }
                case TransferState.Failed failed -> {
                    fail(failed.reason());
                    legs.remove();
                    ended.add(leg);
                }
            }
        }
        ended.removeIf(leg -> release(leg.transfer()));
        if (!running.isEmpty() || !ended.isEmpty()) {
            return false;
        }
        source.addReadInFlight(-1);
        return true;
    }

    private static TransferState poll(Transfer transfer) {
        try {
            return transfer.poll();
        } catch (TransportException e) {
            return new TransferState.Failed(String.valueOf(e.getMessage()));
        }
    }

    private static boolean release(Transfer transfer) {
        try {
            return transfer.release();
        } catch (TransportException e) {
            return false;
        }
    }
}
