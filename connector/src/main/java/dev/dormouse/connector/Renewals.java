package dev.dormouse.connector;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which leases at one peer this rank has renewed without a break, for peers that cannot be asked
 * until when they hold a request. A renewal that reaches a lease after its end renews nothing, so
 * one counts only if the lease, as it was without it, had not ended.
 */
final class Renewals {
    /** Renewals of one request, each sent while the one before was in force. */
    private record Chain(long firstNanos, long endNanos) {}

    private final Map<String, Chain> chains = new HashMap<>();

    /** Renewals were sent, and reach the peer within {@code marginNanos}. */
    void sent(List<String> requestIds, long nowNanos, long extensionNanos, long marginNanos) {
        Chain first = new Chain(nowNanos, nowNanos + extensionNanos);
        for (String id : requestIds) {
            chains.merge(
                    id,
                    first,
                    (old, fresh) ->
                            nowNanos + marginNanos - old.endNanos() < 0
                                    ? new Chain(old.firstNanos(), fresh.endNanos())
                                    : fresh);
        }
    }

    /** Until when the peer holds the request, if it held it until {@code deadlineNanos} anyhow. */
    long extend(String requestId, long deadlineNanos, long marginNanos) {
        Chain chain = chains.get(requestId);
        if (chain == null || chain.firstNanos() + marginNanos - deadlineNanos >= 0) {
            return deadlineNanos;
        }
        return chain.endNanos() - deadlineNanos > 0 ? chain.endNanos() : deadlineNanos;
    }

    /** Forgets renewals that are not in force any more. */
    void forget(long nowNanos) {
        chains.values().removeIf(chain -> nowNanos - chain.endNanos() >= 0);
    }
}
