package dev.dormouse.connector;

import java.util.List;
import java.util.Objects;

/**
 * The waiting engine's part of a push on one rank: registers requests at their holders, and waits
 * for the writes.
 */
final class PushReceiver {
    /** More than an engine receives in the time of a hold. */
    private static final int MAX_SPENT = 1 << 20;

    private final Traffic.Parts parts;
    private final RemoteEngines engines;
    private final PushReceipts receipts;
    private final SpentHandOvers spent;

    /** When the scheduler's clock shows zero, on this rank's. */
    private long schedulerOffsetNanos;

    private int sideChannelPort;
    private long epoch;

    PushReceiver(Traffic.Parts parts, RemoteEngines engines) {
        this.parts = parts;
        this.engines = engines;
        this.receipts = new PushReceipts(parts, engines);
        this.spent = new SpentHandOvers(parts.config().holdLimit().toNanos(), MAX_SPENT);
    }

    void start(ConnectorStep step, long nowNanos) {
        schedulerOffsetNanos = nowNanos - (long) (step.schedulerClockSeconds() * 1e9);
        sideChannelPort = step.sideChannelPort();
        epoch = step.push().epoch();
        for (String id : step.push().cancelled()) {
            receipts.cancel(id, "it is not waited for any more");
            engines.withdraw(id, "it is not waited for any more");
        }
    }

    /** True if a completion of that id is for a request of this rank that waits. */
    boolean knows(String requestId) {
        return receipts.knows(requestId);
    }

    void written(String requestId, String agent) {
        receipts.written(requestId, agent);
    }

    void take(PushEnd end, String agent, long nowNanos) {
        receipts.ended(end, agent, nowNanos);
    }

    /** What becomes of a registration now that its holder may be known. */
    OrderRules.Next next(WaitingOrder waiting, RemoteEngine peer, long nowNanos) {
        ReadOrder order = (ReadOrder) waiting.order();
        RemoteSource holder = order.remote();
        LoadedEngine usable = peer.usable(holder.tpSize());
        if (spent.contains(holder)) {
            return new OrderRules.Next.Refuse(
                    "these parameters were used before: the blocks may be gone");
        }
        if (order.isNotice() && usable != null && usable.identity().reaches(holder)) {
            notNeeded(waiting, peer, usable, nowNanos);
            return OrderRules.Next.BEGUN;
        }
        return switch (OrderVerdict.ofPush(waiting, peer, usable)) {
            case READ -> register(order, peer, Objects.requireNonNull(usable), nowNanos);
            case STALE -> OrderVerdict.refusal(waiting, peer, usable);
            case ASK -> OrderRules.Next.ASK;
        };
    }

    /** A holder of our kind may free its blocks at once; vLLM's has no such message. */
    private void notNeeded(
            WaitingOrder waiting, RemoteEngine peer, LoadedEngine holder, long nowNanos) {
        ReadOrder order = (ReadOrder) waiting.order();
        HoldAnswer hold = waiting.hold();
        spent.add(order.remote(), nowNanos);
        if (holder.identity().instanceId() != null) {
            Notification.Completion message =
                    new Notification.Completion(
                            order.remote().requestId(),
                            holder.mapping().consumers(),
                            hold != null && hold.held());
            parts.messenger().send(peer, holder, message.encode(), nowNanos);
        }
        parts.outcomes().done(order);
    }

    private OrderRules.Next register(
            ReadOrder order, RemoteEngine peer, LoadedEngine holder, long nowNanos) {
        if (sideChannelPort == 0) {
            return new OrderRules.Next.Refuse("no holder can reach this engine yet");
        }
        ConnectorConfig config = parts.config();
        long timeoutNanos = config.pushTimeout().toNanos();
        long deadlineNanos = nowNanos + timeoutNanos;
        RemoteSource here =
                new RemoteSource(
                        config.engineId(),
                        config.instanceId(),
                        order.requestId(),
                        config.advertisedHost(),
                        sideChannelPort,
                        config.tpSize(),
                        1,
                        epoch,
                        new RemoteLease(
                                (deadlineNanos - schedulerOffsetNanos) / 1e9, timeoutNanos / 1e9));
        byte[] message = new PushRegistration(here, order.localBlocks(), order.remote()).encode();
        int sent = parts.messenger().send(peer, holder, message, nowNanos);
        if (sent == 0 && !holder.isConnected()) {
            return OrderRules.Next.ASK;
        }
        if (sent == 0) {
            parts.statistics().failedTransfer();
            parts.outcomes()
                    .failed(
                            order,
                            new Failure(
                                    Failure.Type.PUSH_REG_NOTIF_FAILED,
                                    "the holder did not take the registration"));
            return OrderRules.Next.BEGUN;
        }
        spent.add(order.remote(), nowNanos);
        receipts.sent(order, here, holder, deadlineNanos);
        if (sent < holder.ranks().size()) {
            receipts.cancel(order.requestId(), "not all ranks of the holder took the registration");
        }
        return OrderRules.Next.BEGUN;
    }

    /** A registration ended before it was sent. */
    void ended(ReadOrder order, Failure failure) {
        if (order.isNotice()) {
            parts.outcomes().done(order);
        } else {
            parts.outcomes()
                    .failed(order, failure.withHandshakeAs(Failure.Type.PUSH_REG_HANDSHAKE_FAILED));
        }
    }

    void progress(long nowNanos) {
        spent.forget(nowNanos);
        receipts.progress(nowNanos);
    }

    void beforeRelease() {
        receipts.cancelAll("this engine's KV cache is released");
    }

    boolean isQuiet() {
        return receipts.isEmpty();
    }

    List<String> describe(long nowNanos) {
        return receipts.describe(nowNanos);
    }
}
