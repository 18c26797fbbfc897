package dev.dormouse.connector;

import java.util.List;

/** Ends orders that have not begun. */
final class OrderEnds {
    private final OrderRules rules;
    private final StatisticsRecorder statistics;
    private final TransferFailureLog log;

    OrderEnds(OrderRules rules, StatisticsRecorder statistics, TransferFailureLog log) {
        this.rules = rules;
        this.log = log;
        this.statistics = statistics;
    }

    /** A peer could not be asked, or loaded; the orders that waited for that end. */
    void handshakeFailed(RemoteEngine engine, List<WaitingOrder> covered, String reason) {
        statistics.failedHandshake();
        log.peer(
                new Failure(Failure.Type.HANDSHAKE_SETUP_FAILED, reason),
                engine.engineId(),
                engine.address(),
                covered.size());
        for (WaitingOrder read : covered) {
            if (engine.waiting.contains(read)) {
                end(engine, read, new Failure(Failure.Type.HANDSHAKE_FAILED, reason));
            }
        }
    }

    /** An order must not be carried out. */
    void refuse(RemoteEngine engine, WaitingOrder order, OrderRules.Next.Refuse refusal) {
        if (refusal.late()) {
            statistics.lateTransfer();
        } else if (!order.order().isNotice()) {
            statistics.failedTransfer();
        }
        end(engine, order, new Failure(Failure.Type.TRANSFER_SETUP_FAILED, refusal.reason()));
    }

    /** Nobody wants an order to be carried out any more. */
    void withdraw(RemoteEngine engine, WaitingOrder order, String reason) {
        end(engine, order, new Failure(Failure.Type.TRANSFER_SETUP_FAILED, reason));
    }

    private void end(RemoteEngine engine, WaitingOrder order, Failure failure) {
        engine.waiting.remove(order);
        rules.ended(order.order(), failure);
    }
}
