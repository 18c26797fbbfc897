package dev.dormouse.connector;

import java.util.Objects;

/**
 * The reader's rules: an order is a read from the holder of a request's KV, or the word that
 * nothing will be read.
 */
final class PullRules implements OrderRules {
    /** More than an engine reads in the time of a hold. */
    private static final int MAX_SPENT = 1 << 20;

    private final ConnectorConfig config;
    private final PeerMessenger messenger;
    private final ActiveReads reads;
    private final ReadOutcomes outcomes;
    private final SpentHandOvers spent;

    PullRules(
            ConnectorConfig config,
            PeerMessenger messenger,
            ActiveReads reads,
            ReadOutcomes outcomes) {
        this.config = config;
        this.messenger = messenger;
        this.reads = reads;
        this.outcomes = outcomes;
        this.spent = new SpentHandOvers(config.longestHold().toNanos(), MAX_SPENT);
    }

    @Override
    public Next next(WaitingOrder waiting, RemoteEngine peer, long nowNanos) {
        ReadOrder order = (ReadOrder) waiting.order();
        RemoteSource remote = order.remote();
        LoadedEngine usable = peer.usable(remote.tpSize());
        if (spent.contains(remote)) {
            return new Next.Refuse("these parameters were used before: the blocks may be gone");
        }
        if (order.isNotice() && usable != null && usable.identity().reaches(remote)) {
            // Whoever claimed it first may be reading: only who has it may let it go.
            if (usable.identity().instanceId() != null && waiting.needsClaim()) {
                return Next.CLAIM;
            }
            HoldAnswer hold = waiting.hold();
            if (hold != null && !hold.held()) {
                outcomes.done(order);
                return Next.BEGUN;
            }
            spent.add(remote, nowNanos);
            Notification.Completion notNeeded =
                    new Notification.Completion(
                            remote.requestId(), usable.mapping().consumers(), hold != null);
            if (!messenger.sendToAll(peer, usable, notNeeded.encode(), nowNanos)) {
                outcomes.untold(order, "not all ranks took the message");
            }
            outcomes.done(order);
            return Next.BEGUN;
        }
        return switch (OrderVerdict.of(waiting, peer, usable)) {
            case READ -> startInTime(waiting, peer, Objects.requireNonNull(usable), nowNanos);
            case STALE -> OrderVerdict.refusal(waiting, peer, usable);
            case ASK ->
                    usable != null && waiting.needsClaim() && canClaimInstead(remote, usable)
                            ? Next.CLAIM
                            : Next.ASK;
        };
    }

    /**
     * A request that does not tell which registration it means, because a router dropped the keys,
     * needs no handshake with a peer of our own kind that is loaded: whether that holds the request
     * in this registration, it says of a claim.
     */
    private static boolean canClaimInstead(RemoteSource remote, LoadedEngine loaded) {
        return loaded.identity().instanceId() != null
                && loaded.identity().reaches(remote)
                && (remote.instanceId() == null || remote.epoch() == 0);
    }

    /** Starts the read if its blocks are held for this engine, and for long enough. */
    private Next startInTime(
            WaitingOrder waiting, RemoteEngine peer, LoadedEngine source, long nowNanos) {
        if (source.identity().instanceId() != null && waiting.needsClaim()) {
            return Next.CLAIM;
        }
        long deadlineNanos = ReadDeadline.of(waiting, source, peer.renewals, config, nowNanos);
        if (nowNanos - deadlineNanos < 0) {
            ReadOrder order = (ReadOrder) waiting.order();
            spent.add(order.remote(), nowNanos);
            reads.start(order, source, nowNanos, deadlineNanos);
            return Next.BEGUN;
        }
        HoldAnswer hold = waiting.hold();
        return hold == null || hold.held()
                ? new Next.Refuse(
                        "the peer may not hold the blocks any more: the lease is over", true)
                : new Next.Refuse(
                        "the peer does not hold the blocks for this engine: they are freed, or"
                                + " another engine reads them");
    }

    @Override
    public void ended(PeerOrder order, Failure failure) {
        ReadOrder read = (ReadOrder) order;
        if (read.isNotice()) { // a notice that cannot be given fails nothing
            outcomes.done(read);
        } else {
            outcomes.failed(read, failure);
        }
    }

    @Override
    public void forget(long nowNanos) {
        spent.forget(nowNanos);
    }
}
