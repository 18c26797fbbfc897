package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/** A read that was ordered and has not started. */
final class WaitingRead {
    private final ReadOrder order;
    private final long orderedNanos;
    private final long arrivedNanos;
    private boolean asked;
    private boolean doubted;
    private @Nullable HoldAnswer hold;

    /**
     * A read that was ordered now.
     *
     * @param arrivedNanos when its request came to this engine, on this rank's clock
     */
    WaitingRead(ReadOrder order, long orderedNanos, long arrivedNanos) {
        this.order = order;
        this.orderedNanos = orderedNanos;
        this.arrivedNanos = arrivedNanos;
    }

    ReadOrder order() {
        return order;
    }

    long orderedNanos() {
        return orderedNanos;
    }

    long arrivedNanos() {
        return arrivedNanos;
    }

    /** True if the order is only to tell the holder that nothing is read. */
    boolean isNotice() {
        return order.localBlocks().isEmpty();
    }

    /** True once the peer was asked after this read was ordered. */
    boolean wasAsked() {
        return asked;
    }

    /** The peer was asked; {@code answer} is what it said of the request, if it was asked that. */
    void markAsked(@Nullable HoldAnswer answer) {
        asked = true;
        if (answer != null) {
            hold = answer;
        }
    }

    /** What the holder said of the request, or null if it was not asked or cannot tell. */
    @Nullable HoldAnswer hold() {
        return hold;
    }

    /** From now on only the holder's word counts: its lease may have ended. */
    void doubt() {
        doubted = true;
    }

    /** True if the holder must say whether it still holds the request, if it can. */
    boolean needsHoldAnswer() {
        return !isNotice() && hold == null && (doubted || !order.remote().isComplete());
    }

    /** True if the request says that the peer has this tensor parallel size. */
    boolean namesSize(int tpSize) {
        return order.remote().tpSize() == tpSize;
    }
}
