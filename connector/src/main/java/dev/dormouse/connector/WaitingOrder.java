package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/** An order that has not begun. */
final class WaitingOrder {
    private final PeerOrder order;
    private final long orderedNanos;
    private final long arrivedNanos;
    private boolean asked;
    private boolean doubted;
    private @Nullable HoldAnswer hold;

    /**
     * An order that was given now.
     *
     * @param arrivedNanos when its request came to this engine, on this rank's clock
     */
    WaitingOrder(PeerOrder order, long orderedNanos, long arrivedNanos) {
        this.order = order;
        this.orderedNanos = orderedNanos;
        this.arrivedNanos = arrivedNanos;
    }

    PeerOrder order() {
        return order;
    }

    long orderedNanos() {
        return orderedNanos;
    }

    long arrivedNanos() {
        return arrivedNanos;
    }

    /** True once the peer was asked after this order was given. */
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
        return order.needsHold() && hold == null && (doubted || !order.remote().isComplete());
    }

    /** True if the request says that the peer has this tensor parallel size. */
    boolean namesSize(int tpSize) {
        return order.remote().tpSize() == tpSize;
    }
}
