package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** All writes of one rank that are under way. */
final class ActiveWrites {
    /** Is told how they end. */
    interface Ends {
        /** All ranks of the other engine have all that this rank has. */
        void done(WriteOrder order, long nowNanos);

        /** It will have failed, but a transfer may still write. */
        void failing(WriteOrder order, long nowNanos);

        /** It has failed, and nothing writes any more. */
        void failed(WriteOrder order, Failure failure, long nowNanos);
    }

    private final Traffic.Parts parts;
    private final Ends ends;
    private final List<ActiveTransfer<WriteOrder>> writes = new ArrayList<>();

    ActiveWrites(Traffic.Parts parts, Ends ends) {
        this.parts = parts;
        this.ends = ends;
    }

    /**
     * Starts a write to all ranks of {@code target}; one that cannot start has failed.
     *
     * @param deadlineNanos when it must have ended, see {@link PushDeadline}
     */
    void start(WriteOrder order, LoadedEngine target, long nowNanos, long deadlineNanos) {
        ActiveTransfer<WriteOrder> write =
                new ActiveTransfer<>(order, target, nowNanos, deadlineNanos);
        writes.add(write);
        try {
            for (LoadedEngine.SourceRank rank : target.ranks()) {
                post(write, rank);
            }
        } catch (RuntimeException e) { // without all its transfers it must never count as done
            write.fail(Failure.Type.TRANSFER_SETUP_FAILED, "could not start: " + e.getMessage());
        }
    }

    private void post(ActiveTransfer<WriteOrder> write, LoadedEngine.SourceRank rank) {
        WriteOrder order = write.order();
        BlockPairs pairs = BlockPairs.of(order, parts.local().regions().regions(), rank.geometry());
        BlockList from = parts.local().blocks(pairs.localPieces());
        Notification.Completion written =
                new Notification.Completion(order.remote().requestId(), parts.config().tpSize());
        if (write.isInTime(parts.nanoClock().getAsLong())) {
            write.add(
                    rank,
                    parts.transport()
                            .write(
                                    from,
                                    pairs.local(),
                                    Objects.requireNonNull(rank.blocks()),
                                    pairs.remote(),
                                    written.encode()));
        }
    }

    /**
     * Drives all writes.
     *
     * @return the engines with which one has failed
     */
    List<LoadedEngine> progress(long nowNanos) {
        long timeoutNanos = parts.config().readTimeout().toNanos();
        List<LoadedEngine> suspects = new ArrayList<>();
        for (Iterator<ActiveTransfer<WriteOrder>> each = writes.iterator(); each.hasNext(); ) {
            ActiveTransfer<WriteOrder> write = each.next();
            if (write.failure() == null && nowNanos - write.startedNanos() >= timeoutNanos) {
                write.fail(
                        Failure.Type.TRANSFER_FAILED,
                        "not done within " + Duration.ofNanos(timeoutNanos));
            }
            boolean over = write.progress(parts.statistics(), parts.nanoClock());
            @Nullable Failure failure = write.failure();
            if (failure != null) {
                suspects.add(write.peer());
            }
            if (over) {
                each.remove();
                if (failure == null) {
                    ends.done(write.order(), nowNanos);
                } else {
                    if (write.isLate()) {
                        parts.statistics().lateTransfer();
                    } else {
                        parts.statistics().failedTransfer();
                    }
                    ends.failed(write.order(), failure, nowNanos);
                }
            } else if (failure != null && write.abandon()) {
                ends.failing(write.order(), nowNanos);
            }
        }
        return suspects;
    }

    boolean isEmpty() {
        return writes.isEmpty();
    }

    /** True if blocks of a request of this engine are being sent. */
    boolean isSending(String requestId) {
        return writes.stream().anyMatch(write -> write.order().requestId().equals(requestId));
    }

    /** True if blocks of another engine's request are being written. */
    boolean isWriting(RemoteSource decoder) {
        return writes.stream()
                .anyMatch(write -> write.order().remote().key().equals(decoder.key()));
    }

    /** What is under way, for a message. */
    List<String> describe(long nowNanos) {
        return writes.stream()
                .map(
                        write ->
                                "write of request "
                                        + write.order().requestId()
                                        + " to "
                                        + write.peer()
                                        + " for "
                                        + Duration.ofNanos(nowNanos - write.startedNanos()))
                .toList();
    }
}
