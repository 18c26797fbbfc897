package dev.dormouse.connector;

import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A read under way: one transfer per source rank. It ends when no transfer can touch its blocks any
 * more, not before, however it goes.
 */
final class ActiveRead {
    private final ReadOrder order;
    private final LoadedEngine source;
    private final long startedNanos;
    private final List<Transfer> transfers = new ArrayList<>();
    private final List<Transfer> ended = new ArrayList<>();
    private @Nullable String failure;

    ActiveRead(ReadOrder order, LoadedEngine source, long startedNanos) {
        this.order = order;
        this.source = source;
        this.startedNanos = startedNanos;
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

    void add(Transfer transfer) {
        transfers.add(transfer);
    }

    /** Why it fails, or null as long as it does not. */
    @Nullable String failure() {
        return failure;
    }

    /** From now on it only waits for its transfers to let go of the blocks. */
    void fail(String reason) {
        if (failure == null) {
            failure = reason;
        }
        ended.addAll(transfers);
        transfers.clear();
    }

    /**
     * Drives the transfers.
     *
     * @return true if nothing touches the blocks any more
     */
    boolean progress(StatisticsRecorder statistics) {
        for (Iterator<Transfer> running = transfers.iterator(); running.hasNext(); ) {
            Transfer transfer = running.next();
            switch (poll(transfer)) {
                case TransferState.InProgress _ -> {}
                case TransferState.Done done -> {
                    statistics.transfer(
                            new TransferStatistics.TransferSample(
                                    done.duration().toNanos() / 1e9,
                                    done.postDuration().toNanos() / 1e9,
                                    done.bytes(),
                                    done.descriptors()));
                    running.remove();
                    ended.add(transfer);
                }
                case TransferState.Failed failed -> {
                    failure = failure == null ? failed.reason() : failure;
                    running.remove();
                    ended.add(transfer);
                }
            }
        }
        ended.removeIf(ActiveRead::release);
        if (!transfers.isEmpty() || !ended.isEmpty()) {
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
