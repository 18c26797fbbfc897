package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/** An order that has not begun. */
final class WaitingOrder {
    private final PeerOrder order;
    private final long orderedNanos;
    private final long arrivedNanos;
    private boolean asked;
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

    /** The peer was asked for what it serves. */
    void markAsked() {
        asked = true;
    }

    /** What the peer said does not count any more. */
    void forgetAnswers() {
        asked = false;
        hold = null;
    }

    /** The peer said this of the request. */
    void markClaimed(HoldAnswer answer) {
        hold = answer;
    }

    /** What the holder said of the claim, or null if it was not asked or cannot tell. */
    @Nullable HoldAnswer hold() {
        return hold;
    }

    /** True if the holder must say whether it holds the request for this engine, if it can. */
    boolean needsClaim() {
        return order.needsHold() && hold == null;
    }

    /** True if the request says that the peer has this tensor parallel size. */
    boolean namesSize(int tpSize) {
        return order.remote().tpSize() == tpSize;
    }
}
