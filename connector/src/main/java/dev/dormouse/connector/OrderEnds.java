package dev.dormouse.connector;

import java.util.List;

/** Ends orders that have not begun. */
final class OrderEnds {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final OrderRules rules;
    private final StatisticsRecorder statistics;

    OrderEnds(OrderRules rules, StatisticsRecorder statistics) {
        this.rules = rules;
        this.statistics = statistics;
    }

    /** A peer could not be asked, or loaded; the orders that waited for that end. */
    void handshakeFailed(RemoteEngine engine, List<WaitingOrder> covered, String reason) {
        statistics.failedHandshake();
        LOG.log(
                System.Logger.Level.WARNING,
                "handshake failed: {0}; remoteEngine={1} waiting={2}",
                reason,
                Excerpt.of(engine.engineId()),
                covered.size());
        for (WaitingOrder read : covered) {
            if (engine.waiting.contains(read)) {
                end(engine, read, reason);
            }
        }
    }

    /** An order must not be carried out. */
    void refuse(RemoteEngine engine, WaitingOrder order, String reason) {
        if (!order.order().isNotice()) {
            statistics.failedTransfer();
        }
        end(engine, order, reason);
    }

    /** An order ends, for whatever reason. */
    void end(RemoteEngine engine, WaitingOrder order, String reason) {
        engine.waiting.remove(order);
        rules.ended(order.order(), reason);
    }
}
