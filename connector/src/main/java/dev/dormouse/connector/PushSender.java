package dev.dormouse.connector;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The holder's part of a push on one rank: matches held requests with registrations, and writes.
 *
 * <p>It never writes through a registration of memory that its owner has let go of: what is loaded
 * of the other engine is judged against what that engine's message names, as a reader judges a
 * holder; and from the moment at which this rank says that it is done with a registration, nothing
 * begins for it.
 */
final class PushSender implements ActiveTransfers.Ends<WriteOrder> {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private static final int MAX_UNSAID = 1 << 12;

    private static final long ASK_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** A message, and when the other engine was last asked for its sake. */
    private static final class Unsaid {
        private final RemoteSource decoder;
        private final byte[] message;
        private final long sinceNanos;
        private long askedNanos;

        private Unsaid(RemoteSource decoder, byte[] message, long nowNanos) {
            this.decoder = decoder;
            this.message = message;
            this.sinceNanos = nowNanos;
            this.askedNanos = nowNanos;
        }
    }

    private final Traffic.Parts parts;
    private final RemoteEngines engines;
    private final PushMatches matches;
    private final ActiveWrites writes;
    private final TransferFailureLog log;

    /** By the other engine's request: what it is told once it can be. */
    private final LinkedHashMap<RemoteSource.Key, Unsaid> unsaid = new LinkedHashMap<>();

    /** What engines have taken back, and does not count as obeyed yet. */
    private final Map<String, PushCancel> cancels = new LinkedHashMap<>();

    /** Of this engine's registration. */
    private long epoch;

    /** False while the KV cache is released, or about to be. */
    private boolean serving = true;

    PushSender(Traffic.Parts parts, RemoteEngines engines) {
        this.parts = parts;
        this.engines = engines;
        this.matches = new PushMatches(parts.config().pushTimeout().toNanos());
        this.writes = new ActiveWrites(parts, this);
        this.log = new TransferFailureLog(parts.config().engineId());
    }

    void start(ConnectorStep step, long nowNanos) {
        serving = true;
        epoch = step.push().epoch();
        step.push().handOvers().forEach((id, blocks) -> begin(matches.hold(id, blocks), nowNanos));
    }

    /** An engine waits for a request. */
    void take(PushRegistration registration, String sender, long nowNanos) {
        RemoteSource decoder = registration.decoder();
        RemoteSource here = registration.holder();
        String named = here.requestId();
        if (!here.engineId().equals(parts.config().engineId())) {
            drop(registration, sender, "it is for another engine");
        } else if (matches.isClosed(decoder)) { // on a rank that had not been told
            tell(decoder, true, nowNanos);
        } else if (matches.isKnown(decoder)) {
            if (!matches.registerAgain(registration, sender)) {
                drop(registration, sender, "it contradicts another of the same request");
            }
        } else if (matches.isFull(registration) || registration.blocks().size() > localBlocks()) {
            parts.statistics().malformedNotification();
            giveUp(decoder, "it, or all that wait with it, are too many", nowNanos);
        } else if (!serving || !isOfNow(here)) {
            giveUp(decoder, "this engine's KV cache was released since", nowNanos);
        } else if (!(named.isEmpty() || matches.isFree(named) || isComing(named))) {
            giveUp(decoder, "its request is not held here", nowNanos);
        } else {
            begin(matches.register(registration, sender, nowNanos), nowNanos);
            engines.expect(decoder, nowNanos);
        }
    }

    /** Whether a registration, as far as it tells, was made with these pages of this process. */
    private boolean isOfNow(RemoteSource here) {
        String instanceId = here.instanceId();
        return (instanceId == null || instanceId.equals(parts.config().instanceId()))
                && (here.epoch() == 0 || here.epoch() >= epoch);
    }

    private void drop(PushRegistration registration, String sender, String reason) {
        parts.statistics().malformedNotification();
        LOG.log(
                System.Logger.Level.WARNING,
                "dropped a push registration: {0}; sender={1} engine={2} request={3}",
                reason,
                Excerpt.of(sender),
                Excerpt.of(registration.holder().engineId()),
                Excerpt.of(registration.decoder().requestId()));
    }

    /** An engine does not wait any more: nothing begins for it from the next look on. */
    void take(PushCancel cancel) {
        cancels.put(cancel.id(), cancel);
    }

    /** The cancellations of engines for whom nothing is written any more, nor ever will be. */
    Set<String> takeObeyed(long nowNanos) {
        Set<String> obeyed = new LinkedHashSet<>();
        for (PushCancel cancel : cancels.values()) {
            RemoteSource decoder = cancel.decoder();
            if (!writes.isWriting(decoder)) {
                if (matches.isOpen(decoder)) { // other ranks there may wait for it still
                    boolean _ = engines.tellLoaded(decoder, end(decoder, true), nowNanos);
                }
                String requestId = matches.close(decoder, nowNanos);
                if (requestId != null) {
                    engines.withdraw(requestId, "it was cancelled");
                    free(requestId);
                }
                obeyed.add(cancel.id());
            }
        }
        cancels.keySet().removeAll(obeyed);
        return obeyed;
    }

    /** Who has claimed a request does not want it, and nobody else can. */
    private void free(@Nullable String requestId) {
        if (requestId != null) {
            parts.ledger().sent(requestId, parts.finishedSending());
        }
    }

    /** No request has more blocks than the cache. */
    private int localBlocks() {
        return parts.local().regions().regions().stream()
                .mapToInt(KvCacheRegions.Region::blocks)
                .max()
                .orElse(0);
    }

    /** True for a request that has not ended; its blocks come together with its lease. */
    private boolean isComing(String requestId) {
        return parts.ledger().knows(requestId) && !parts.ledger().holds(requestId);
    }

    private void begin(PushMatches.@Nullable Match match, long nowNanos) {
        if (match == null) {
            return;
        }
        PushRegistration registration = match.registration();
        int wanted = registration.blocks().size();
        int have = match.blocks().size();
        if (wanted > have) {
            giveUp(
                    registration.decoder(),
                    "it wants " + wanted + " blocks, the prompt has " + have,
                    nowNanos);
            return;
        }
        engines.submit(
                new WriteOrder(
                        match.requestId(),
                        registration.decoder(),
                        match.sender(),
                        match.blocks().subList(have - wanted, have),
                        registration.blocks()),
                match.arrivedNanos(),
                nowNanos);
    }

    /** What becomes of a write now that its target may be known. */
    OrderRules.Next next(WaitingOrder waiting, RemoteEngine peer, long nowNanos) {
        WriteOrder order = (WriteOrder) waiting.order();
        RemoteSource decoder = order.remote();
        LoadedEngine usable = peer.usable(decoder.tpSize());
        if (!matches.isActive(decoder)) {
            return new OrderRules.Next.Refuse("it was cancelled");
        }
        if (!parts.ledger().holds(order.requestId())) {
            return new OrderRules.Next.Refuse("its blocks are not held any more");
        }
        return switch (OrderVerdict.ofPush(waiting, peer, usable)) {
            case READ -> startInTime(waiting, order, Objects.requireNonNull(usable), nowNanos);
            case STALE -> OrderVerdict.refusal(waiting, peer, usable);
            case ASK -> OrderRules.Next.ASK;
        };
    }

    private OrderRules.Next startInTime(
            WaitingOrder waiting, WriteOrder order, LoadedEngine target, long nowNanos) {
        if (!target.holds(order.sender())) {
            return new OrderRules.Next.Refuse(
                    "an agent that is not of that engine registered it: "
                            + Excerpt.of(order.sender()));
        }
        if (order.remote().instanceId() != null && !isWantedByAll(order, target)) {
            long waitedNanos = nowNanos - waiting.orderedNanos();
            return waitedNanos < 2 * parts.config().handshakeTimeout().toNanos()
                    ? OrderRules.Next.WAIT
                    : new OrderRules.Next.Refuse("not all ranks of the engine wait for it");
        }
        long deadlineNanos =
                PushDeadline.ofWrite(
                        matches.lease(order.remote()),
                        target,
                        waiting.arrivedNanos(),
                        parts.config(),
                        nowNanos);
        if (nowNanos - deadlineNanos >= 0) {
            return new OrderRules.Next.Refuse("the engine may not wait for it any more", true);
        }
        writes.start(order, target, nowNanos, deadlineNanos);
        return OrderRules.Next.BEGUN;
    }

    /**
     * True if each rank has registered: one that has not does not wait until nothing can write it
     * before its blocks are another prompt's.
     */
    private boolean isWantedByAll(WriteOrder order, LoadedEngine target) {
        Set<String> senders = matches.senders(order.remote());
        return target.ranks().stream().allMatch(rank -> senders.contains(rank.peer().agentName()));
    }

    /** A write ended before it began. */
    void ended(WriteOrder order, Failure failure, long nowNanos) {
        log.request(failure.withHandshakeAs(Failure.Type.PUSH_HANDSHAKE_FAILED), order);
        end(order.remote(), nowNanos);
    }

    @Override
    public void done(ActiveTransfer<WriteOrder> write, long nowNanos) {
        WriteOrder order = write.order();
        var _ = matches.close(order.remote(), nowNanos);
        parts.ledger().sent(order.requestId(), parts.finishedSending());
    }

    @Override
    public void failing(ActiveTransfer<WriteOrder> write, Failure failure, long nowNanos) {
        tell(write.order().remote(), false, nowNanos);
    }

    /** Its lease frees the blocks, as in vLLM. */
    @Override
    public void failed(ActiveTransfer<WriteOrder> write, Failure failure, long nowNanos) {
        log.request(failure, write.order());
        var _ = matches.close(write.order().remote(), nowNanos);
        tell(write.order().remote(), true, nowNanos);
    }

    @Override
    public void unreleased(WriteOrder order, Failure failure) {
        log.request(failure, order);
    }

    List<LoadedEngine> progress(long nowNanos) {
        List<LoadedEngine> suspects = writes.progress(nowNanos);
        for (PushRegistration vain :
                matches.sweep(parts.ledger()::holds, this::isComing, nowNanos)) {
            giveUp(vain.decoder(), "its request is not held any more", nowNanos);
        }
        sayAgain(nowNanos);
        return suspects;
    }

    void beforeRelease(long nowNanos) {
        serving = false;
        unsaid.clear();
        for (PushRegistration waiting : matches.clear(nowNanos)) {
            giveUp(waiting.decoder(), "this engine's KV cache is released", nowNanos);
        }
        for (String requestId : matches.activeRequests()) {
            engines.withdraw(requestId, "this engine's KV cache is released");
        }
    }

    boolean isQuiet() {
        return writes.isEmpty();
    }

    /** True from the registration of a reader of the request until its write is over. */
    boolean isServing(String requestId) {
        return matches.isServing(requestId);
    }

    boolean isSending(String requestId) {
        return writes.isSending(requestId);
    }

    List<String> describe(long nowNanos) {
        return writes.describe(nowNanos);
    }

    private void giveUp(RemoteSource decoder, String reason, long nowNanos) {
        LOG.log(
                System.Logger.Level.WARNING,
                "push given up: {0}; engine={1} request={2}",
                reason,
                Excerpt.of(decoder.engineId()),
                Excerpt.of(decoder.requestId()));
        end(decoder, nowNanos);
    }

    /** Nothing was written, and nothing will be; engines of vLLM rely on the lease. */
    private void end(RemoteSource decoder, long nowNanos) {
        String requestId = matches.close(decoder, nowNanos);
        if (decoder.instanceId() != null) {
            free(requestId);
        }
        tell(decoder, true, nowNanos);
    }

    private static byte[] end(RemoteSource decoder, boolean clear) {
        return new PushEnd(decoder.requestId(), clear).encode();
    }

    private void tell(RemoteSource decoder, boolean clear, long nowNanos) {
        if (decoder.instanceId() == null) { // of vLLM, which would end at it
            return;
        }
        byte[] message = end(decoder, clear);
        unsaid.remove(decoder.key());
        if (!engines.tellLoaded(decoder, message, nowNanos) && serving) {
            unsaid.put(decoder.key(), new Unsaid(decoder, message, nowNanos));
            if (unsaid.size() > MAX_UNSAID) {
                unsaid.pollFirstEntry();
            }
            engines.expect(decoder, nowNanos);
        }
    }

    /** Says again what could not be said, as long as the other engine may wait for it. */
    private void sayAgain(long nowNanos) {
        long patienceNanos = parts.config().pushTimeout().toNanos();
        for (Unsaid each : List.copyOf(unsaid.values())) {
            if (nowNanos - each.sinceNanos >= patienceNanos
                    || engines.tellLoaded(each.decoder, each.message, nowNanos)) {
                unsaid.remove(each.decoder.key());
            } else if (nowNanos - each.askedNanos >= ASK_NANOS) {
                each.askedNanos = nowNanos;
                engines.expect(each.decoder, nowNanos);
            }
        }
    }
}
