package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import java.util.List;
import java.util.Objects;

/** All writes of one rank that are under way. */
final class ActiveWrites {
    private final Traffic.Parts parts;
    private final ActiveTransfers<WriteOrder> writes;

    ActiveWrites(Traffic.Parts parts, ActiveTransfers.Ends<WriteOrder> ends) {
        this.parts = parts;
        this.writes =
                new ActiveTransfers<>(
                        ends, parts.statistics(), parts.config().readTimeout(), parts.nanoClock());
    }

    /**
     * Starts a write to all ranks of {@code target}; one that cannot start has failed.
     *
     * @param deadlineNanos when it must have ended, see {@link PushDeadline}
     */
    void start(WriteOrder order, LoadedEngine target, long nowNanos, long deadlineNanos) {
        writes.start(order, target, nowNanos, deadlineNanos, this::post);
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

    /** See {@link ActiveTransfers#progress}. */
    List<LoadedEngine> progress(long nowNanos) {
        return writes.progress(nowNanos);
    }

    boolean isEmpty() {
        return writes.isEmpty();
    }

    /** True if blocks of a request of this engine are being sent. */
    boolean isSending(String requestId) {
        return writes.orders().anyMatch(order -> order.requestId().equals(requestId));
    }

    /** True if blocks of another engine's request are being written. */
    boolean isWriting(RemoteSource decoder) {
        return writes.orders().anyMatch(order -> order.remote().key().equals(decoder.key()));
    }

    /** What is under way, for a message. */
    List<String> describe(long nowNanos) {
        return writes.describe("write of request", "to", nowNanos);
    }
}
