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

    private static final String NOT_WANTED = "it is not waited for any more";
    private static final String NOT_TAKEN = "not all ranks of the holder took the registration";

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
            receipts.withdraw(id, NOT_WANTED, nowNanos);
            engines.withdraw(id, NOT_WANTED);
        }
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
            return notNeeded(waiting, peer, usable, nowNanos);
        }
        return switch (OrderVerdict.ofPush(waiting, peer, usable)) {
            case READ -> registerIfHeld(waiting, peer, Objects.requireNonNull(usable), nowNanos);
            case STALE -> OrderVerdict.refusal(waiting, peer, usable);
            case ASK -> OrderRules.Next.ASK;
        };
    }

    /**
     * A holder of our kind may free its blocks at once, or when it has computed them, if nobody
     * else has claimed them; vLLM's has no such message.
     */
    private OrderRules.Next notNeeded(
            WaitingOrder waiting, RemoteEngine peer, LoadedEngine holder, long nowNanos) {
        ReadOrder order = (ReadOrder) waiting.order();
        boolean isOurs = holder.identity().instanceId() != null;
        if (isOurs && waiting.needsClaim()) {
            return OrderRules.Next.CLAIM;
        }
        HoldAnswer hold = waiting.hold();
        if (isOurs && hold != null && (hold.held() || hold.expected())) {
            Notification.Completion message =
                    new Notification.Completion(
                            order.remote().requestId(), holder.mapping().consumers(), true);
            if (!parts.messenger().sendToAll(peer, holder, message.encode(), nowNanos)) {
                parts.outcomes().untold(order, "not all ranks took the message");
            }
        }
        spent.add(order.remote(), nowNanos);
        parts.outcomes().done(order);
        return OrderRules.Next.BEGUN;
    }

    /** Registers if the holder, where it can be asked, has or expects the request for us. */
    private OrderRules.Next registerIfHeld(
            WaitingOrder waiting, RemoteEngine peer, LoadedEngine holder, long nowNanos) {
        if (holder.identity().instanceId() != null) {
            if (waiting.needsClaim()) {
                return OrderRules.Next.CLAIM;
            }
            HoldAnswer hold = waiting.hold();
            if (hold != null && !hold.promises(holder.identity())) {
                return new OrderRules.Next.Refuse(
                        "the holder does not hold the blocks for this engine: they are freed, it"
                                + " has slept, or another engine waits for them");
            }
        }
        return register((ReadOrder) waiting.order(), peer, holder, nowNanos);
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
        byte[] message =
                new PushRegistration(here, order.localBlocks(), there(order, holder)).encode();
        int sent = parts.messenger().send(peer, holder, message, nowNanos);
        if (sent == 0 && !holder.isConnected()) {
            return OrderRules.Next.ASK;
        }
        if (sent == 0 && holder.identity().instanceId() == null) { // it cannot be asked
            parts.statistics().failedTransfer();
            parts.outcomes()
                    .failed(order, new Failure(Failure.Type.PUSH_REG_NOTIF_FAILED, NOT_TAKEN));
            return OrderRules.Next.BEGUN;
        }
        spent.add(order.remote(), nowNanos);
        receipts.sent(order, here, holder, deadlineNanos, nowNanos);
        if (sent < holder.ranks().size()) { // whether or not it arrived
            receipts.cancel(order.requestId(), NOT_TAKEN, nowNanos);
        }
        return OrderRules.Next.BEGUN;
    }

    /**
     * The holder's end, as this rank knows it: what another registration is asked of is refused.
     */
    private static RemoteSource there(ReadOrder order, LoadedEngine holder) {
        RemoteSource remote = order.remote();
        return new RemoteSource(
                remote.engineId(),
                holder.identity().instanceId(),
                remote.requestId(),
                remote.host(),
                remote.port(),
                remote.tpSize(),
                remote.ppSize(),
                holder.identity().instanceId() == null ? 0 : holder.identity().epoch());
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

    void beforeRelease(long nowNanos) {
        receipts.cancelAll("this engine's KV cache is released", nowNanos);
    }

    boolean isQuiet() {
        return receipts.isEmpty();
    }

    List<String> describe(long nowNanos) {
        return receipts.describe(nowNanos);
    }
}
