package dev.dormouse.connector;

import dev.dormouse.connector.PushReceipt.RankState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The requests of one rank that holders were asked to write, until nothing can write their blocks
 * any more: every rank of the holder has written, or said that it will not; or another process has
 * the holder's place; or so much time has passed that no engine writes. What does not come is
 * {@linkplain PushInquiries asked for}.
 */
final class PushReceipts {
    private static final int MAX_EARLY = 1 << 12;

    /** More than any holder has ranks. */
    private static final int MAX_EARLY_AGENTS = 1_024;

    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final RemoteEngines engines;
    private final PushInquiries inquiries;
    private final long marginNanos;
    private final Map<String, PushReceipt> receipts = new LinkedHashMap<>();

    /** Agents that have written requests which this rank has not registered yet. */
    private final LinkedHashMap<String, Set<String>> early = new LinkedHashMap<>();

    PushReceipts(Traffic.Parts parts, RemoteEngines engines) {
        this.outcomes = parts.outcomes();
        this.statistics = parts.statistics();
        this.engines = engines;
        this.inquiries = new PushInquiries(parts.config(), engines);
        this.marginNanos = PushDeadline.marginNanos(parts.config().pushTimeout().toNanos());
    }

    /** A holder was asked. */
    void sent(
            ReadOrder order,
            RemoteSource decoder,
            LoadedEngine holder,
            long deadlineNanos,
            long nowNanos) {
        PushReceipt receipt = new PushReceipt(order, decoder, holder, deadlineNanos, nowNanos);
        receipts.put(order.requestId(), receipt);
        Set<String> agents = early.remove(order.requestId());
        if (agents != null) {
            agents.forEach(agent -> receipt.advance(agent, RankState.DONE));
        }
    }

    /** An agent has written a request, perhaps one that this rank registers in a moment. */
    void written(String requestId, String agent) {
        PushReceipt receipt = receipts.get(requestId);
        if (receipt != null) {
            receipt.advance(agent, RankState.DONE);
        } else {
            Set<String> agents = early.computeIfAbsent(requestId, _ -> new HashSet<>());
            if (agents.size() < MAX_EARLY_AGENTS) {
                agents.add(agent);
            }
            if (early.size() > MAX_EARLY) {
                early.pollFirstEntry();
            }
        }
    }

    /** A rank of a holder will not complete a request. */
    void ended(PushEnd end, String agent, long nowNanos) {
        PushReceipt receipt = receipts.get(end.requestId());
        if (receipt != null && receipt.ranks().containsKey(agent)) {
            if (end.clear()) {
                receipt.advance(agent, RankState.CLEAR);
            } else {
                receipt.sayNotYet(nowNanos);
            }
            if (receipt.failure() == null && !receipt.all(RankState.DONE)) {
                fail(receipt, "the holder does not write it", nowNanos);
            }
        }
    }

    /** A request is not waited for any more, since its push has failed. */
    void cancel(String requestId, String reason, long nowNanos) {
        PushReceipt receipt = receipts.get(requestId);
        if (receipt != null && receipt.failure() == null) {
            fail(receipt, reason, nowNanos);
        }
    }

    /** A request is not waited for any more, since it has ended: that is no failed transfer. */
    void withdraw(String requestId, String reason, long nowNanos) {
        PushReceipt receipt = receipts.get(requestId);
        if (receipt != null && receipt.failure() == null) {
            receipt.fail(new Failure(Failure.Type.TRANSFER_FAILED, reason), nowNanos);
        }
    }

    void cancelAll(String reason, long nowNanos) {
        receipts.keySet().forEach(id -> cancel(id, reason, nowNanos));
    }

    void progress(long nowNanos) {
        for (Iterator<PushReceipt> each = receipts.values().iterator(); each.hasNext(); ) {
            PushReceipt receipt = each.next();
            if (receipt.failure() == null && receipt.all(RankState.DONE)) {
                outcomes.done(receipt.order());
                each.remove();
                continue;
            }
            if (receipt.failure() == null) {
                look(receipt, nowNanos);
            }
            @Nullable Failure failure = receipt.failure();
            if (failure != null) {
                if (isClear(receipt, nowNanos)) {
                    end(receipt, failure);
                    each.remove();
                } else if (receipt.abandon()) {
                    outcomes.abandoned(receipt.order(), failure);
                }
            }
        }
        inquiries.progress(receipts.values(), nowNanos);
    }

    /** Whether it can still be written. */
    private void look(PushReceipt receipt, long nowNanos) {
        if (nowNanos - receipt.deadlineNanos() >= 0) {
            fail(receipt, "the holder did not write it in time", nowNanos);
        } else if (!receipt.holder().isConnected() || isHolderAnother(receipt)) {
            fail(receipt, "the holder was lost, or let go of its KV cache", nowNanos);
        } else if (receipt.isLost()) {
            fail(receipt, "the holder does not hold it any more", nowNanos);
        }
    }

    boolean isEmpty() {
        return receipts.isEmpty();
    }

    /** What is under way, for a message. */
    List<String> describe(long nowNanos) {
        List<String> pending = new ArrayList<>();
        for (PushReceipt receipt : receipts.values()) {
            pending.add(
                    "request "
                            + receipt.order().requestId()
                            + " may be written by "
                            + receipt.holder()
                            + " for "
                            + Duration.ofNanos(receipt.deadlineNanos() + marginNanos - nowNanos)
                            + receipt.ranks().values());
        }
        return pending;
    }

    private void fail(PushReceipt receipt, String reason, long nowNanos) {
        receipt.fail(new Failure(Failure.Type.TRANSFER_FAILED, reason), nowNanos);
        statistics.failedTransfer();
    }

    private void end(PushReceipt receipt, Failure failure) {
        if (receipt.wasAbandoned()) {
            outcomes.letGo(receipt.order());
        } else {
            outcomes.failed(receipt.order(), failure);
        }
    }

    /** True if nothing can write its blocks any more. */
    private boolean isClear(PushReceipt receipt, long nowNanos) {
        return receipt.isReleased()
                || receipt.all(RankState.DONE, RankState.CLEAR)
                || isHolderReplaced(receipt)
                || (nowNanos - receipt.deadlineNanos() >= marginNanos
                        && !receipt.saidNotYet(marginNanos, nowNanos));
    }

    /** Whoever published anew does not write what was asked of it before. */
    private boolean isHolderAnother(PushReceipt receipt) {
        RegistrationIdentity now = engines.identity(receipt.order().remote());
        return isHolderReplaced(receipt)
                || (receipt.identity().instanceId() != null
                        && now != null
                        && now.epoch() > receipt.identity().newestEpoch());
    }

    /**
     * True if another process has the holder's place: nothing of the old one writes any more. A
     * holder that published anew may still be writing, since a sleep that is given up publishes the
     * same pages again.
     */
    private boolean isHolderReplaced(PushReceipt receipt) {
        RegistrationIdentity now = engines.identity(receipt.order().remote());
        return receipt.identity().instanceId() != null
                && now != null
                && now.instanceId() != null
                && !now.instanceId().equals(receipt.identity().instanceId());
    }
}
