package dev.dormouse.connector;

/** A read that was ordered and has not started. */
final class WaitingRead {
    private final ReadOrder order;
    private final long orderedNanos;
    private boolean asked;

    WaitingRead(ReadOrder order, long orderedNanos) {
        this.order = order;
        this.orderedNanos = orderedNanos;
    }

    ReadOrder order() {
        return order;
    }

    long orderedNanos() {
        return orderedNanos;
    }

    /** True if the order is only to tell the holder that nothing is read. */
    boolean isNotice() {
        return order.localBlocks().isEmpty();
    }

    /** True once the peer was asked after this read was ordered. */
    boolean wasAsked() {
        return asked;
    }

    void markAsked() {
        asked = true;
    }

    boolean names(SideChannelAddress address) {
        return address.host().equals(order.remote().host())
                && address.port() == order.remote().port();
    }
}
