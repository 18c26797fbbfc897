package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
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
 * the holder's place; or so much time has passed that no engine writes. A request that is not
 * waited for any more has the holder asked until then.
 */
final class PushReceipts {
    private static final long CANCEL_NANOS = Duration.ofSeconds(1).toNanos();
    private static final int MAX_EARLY = 1 << 12;

    /** More than any holder has ranks. */
    private static final int MAX_EARLY_AGENTS = 1_024;

    /** How far one rank of the holder is. */
    private enum RankState {
        WAITED_FOR,
        WRITING,
        DONE,
        CLEAR
    }

    /** One request. */
    private static final class Receipt {
        private final ReadOrder order;
        private final RemoteSource decoder;
        private final LoadedEngine holder;
        private final RegistrationIdentity identity;
        private final long deadlineNanos;
        private final Map<String, RankState> ranks = new HashMap<>();
        private @Nullable Failure failure;
        private boolean abandoned;
        private long toldNanos;
        private long writingNanos;

        private Receipt(
                ReadOrder order, RemoteSource decoder, LoadedEngine holder, long deadlineNanos) {
            this.order = order;
            this.decoder = decoder;
            this.holder = holder;
            this.identity = holder.identity();
            this.deadlineNanos = deadlineNanos;
            holder.ranks()
                    .forEach(rank -> ranks.put(rank.peer().agentName(), RankState.WAITED_FOR));
        }

        private boolean all(RankState... states) {
            return ranks.values().stream().allMatch(state -> List.of(states).contains(state));
        }

        private boolean any(RankState state) {
            return ranks.containsValue(state);
        }
    }

    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final RemoteEngines engines;
    private final long marginNanos;
    private final Map<String, Receipt> receipts = new LinkedHashMap<>();

    /** Agents that have written requests which this rank has not registered yet. */
    private final LinkedHashMap<String, Set<String>> early = new LinkedHashMap<>();

    PushReceipts(Traffic.Parts parts, RemoteEngines engines) {
        this.outcomes = parts.outcomes();
        this.statistics = parts.statistics();
        this.engines = engines;
        this.marginNanos = PushDeadline.marginNanos(parts.config().pushTimeout().toNanos());
    }

    /** A holder was asked. */
    void sent(ReadOrder order, RemoteSource decoder, LoadedEngine holder, long deadlineNanos) {
        Receipt receipt = new Receipt(order, decoder, holder, deadlineNanos);
        receipts.put(order.requestId(), receipt);
        Set<String> agents = early.remove(order.requestId());
        if (agents != null) {
            agents.forEach(agent -> advance(receipt, agent, RankState.DONE));
        }
    }

    boolean knows(String requestId) {
        return receipts.containsKey(requestId);
    }

    /** An agent has written a request, perhaps one that this rank registers in a moment. */
    void written(String requestId, String agent) {
        Receipt receipt = receipts.get(requestId);
        if (receipt != null) {
            advance(receipt, agent, RankState.DONE);
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
        Receipt receipt = receipts.get(end.requestId());
        if (receipt != null && receipt.ranks.containsKey(agent)) {
            advance(receipt, agent, end.clear() ? RankState.CLEAR : RankState.WRITING);
            receipt.writingNanos = nowNanos;
            if (receipt.failure == null && !receipt.all(RankState.DONE)) {
                fail(receipt, "the holder does not write it");
            }
        }
    }

    /** A request is not waited for any more. */
    void cancel(String requestId, String reason) {
        Receipt receipt = receipts.get(requestId);
        if (receipt != null && receipt.failure == null) {
            fail(receipt, reason);
        }
    }

    void cancelAll(String reason) {
        receipts.keySet().forEach(id -> cancel(id, reason));
    }

    void progress(long nowNanos) {
        for (Iterator<Receipt> each = receipts.values().iterator(); each.hasNext(); ) {
            Receipt receipt = each.next();
            if (receipt.failure == null && receipt.all(RankState.DONE)) {
                outcomes.done(receipt.order);
                each.remove();
                continue;
            }
            if (receipt.failure == null && nowNanos - receipt.deadlineNanos >= 0) {
                fail(receipt, "the holder did not write it in time");
            } else if (receipt.failure == null
                    && (!receipt.holder.isConnected() || isHolderAnother(receipt))) {
                fail(receipt, "the holder was lost, or let go of its KV cache");
            }
            @Nullable Failure failure = receipt.failure;
            if (failure != null) {
                if (isClear(receipt, nowNanos)) {
                    end(receipt, failure);
                    each.remove();
                } else {
                    await(receipt, failure, nowNanos);
                }
            }
        }
    }

    boolean isEmpty() {
        return receipts.isEmpty();
    }

    /** What is under way, for a message. */
    List<String> describe(long nowNanos) {
        List<String> pending = new ArrayList<>();
        for (Receipt receipt : receipts.values()) {
            pending.add(
                    "request "
                            + receipt.order.requestId()
                            + " may be written by "
                            + receipt.holder
                            + " for "
                            + Duration.ofNanos(receipt.deadlineNanos + marginNanos - nowNanos)
                            + receipt.ranks.values());
        }
        return pending;
    }

    private void fail(Receipt receipt, String reason) {
        receipt.failure = new Failure(Failure.Type.TRANSFER_FAILED, reason);
        receipt.toldNanos = Long.MIN_VALUE;
        statistics.failedTransfer();
    }

    private void end(Receipt receipt, Failure failure) {
        if (receipt.abandoned) {
            outcomes.letGo(receipt.order);
        } else {
            outcomes.failed(receipt.order, failure);
        }
    }

    /** It has failed, but may still be written: the holder is asked to leave it. */
    private void await(Receipt receipt, Failure failure, long nowNanos) {
        if (!receipt.abandoned) {
            receipt.abandoned = true;
            outcomes.abandoned(receipt.order, failure);
        }
        if (receipt.identity.instanceId() != null
                && (receipt.toldNanos == Long.MIN_VALUE
                        || nowNanos - receipt.toldNanos >= CANCEL_NANOS)) {
            receipt.toldNanos = nowNanos;
            byte[] cancel = new PushCancel(receipt.decoder).encode();
            engines.tell(receipt.order.remote(), cancel, nowNanos);
        }
    }

    /** True if nothing can write its blocks any more. */
    private boolean isClear(Receipt receipt, long nowNanos) {
        if (receipt.all(RankState.DONE, RankState.CLEAR) || isHolderReplaced(receipt)) {
            return true;
        }
        boolean isWriting =
                receipt.any(RankState.WRITING) && nowNanos - receipt.writingNanos < marginNanos;
        return nowNanos - receipt.deadlineNanos >= marginNanos && !isWriting;
    }

    /** Whoever published anew does not write what was asked of it before. */
    private boolean isHolderAnother(Receipt receipt) {
        RegistrationIdentity now = engines.identity(receipt.order.remote());
        return isHolderReplaced(receipt)
                || (receipt.identity.instanceId() != null
                        && now != null
                        && now.epoch() > receipt.identity.newestEpoch());
    }

    /**
     * True if another process has the holder's place: nothing of the old one writes any more. A
     * holder that published anew may still be writing, since a sleep that is given up publishes the
     * same pages again.
     */
    private boolean isHolderReplaced(Receipt receipt) {
        RegistrationIdentity now = engines.identity(receipt.order.remote());
        return receipt.identity.instanceId() != null
                && now != null
                && now.instanceId() != null
                && !now.instanceId().equals(receipt.identity.instanceId());
    }

    private static void advance(Receipt receipt, String agent, RankState to) {
        receipt.ranks.computeIfPresent(
                agent,
                (_, state) -> state == RankState.DONE || state == RankState.CLEAR ? state : to);
    }
}
