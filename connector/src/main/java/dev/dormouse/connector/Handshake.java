package dev.dormouse.connector;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A question to a peer's side channel that is under way. Only {@link #answer} and {@link #claims}
 * are touched by the handshake thread.
 *
 * @param address where the peer is asked
 * @param startedNanos when
 * @param deadlineNanos when it has failed, whatever its thread does
 * @param covered the reads that waited for these ranks when it started: for them, the answer is new
 *     enough
 * @param claims what is claimed on the way
 * @param joined reads that came later, but early enough to be claimed with the others
 * @param answer what the peer told, decoded and checked, or why there is nothing
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long deadlineNanos,
        List<WaitingOrder> covered,
        OpenClaims claims,
        Set<WaitingOrder> joined,
        CompletableFuture<Answer> answer) {
    /**
     * What a peer told.
     *
     * @param engine its ranks and its clock; null if only claims were made
     * @param holds what it said of the requests that were claimed
     */
    record Answer(@Nullable FetchedEngine engine, Map<HoldQuestion, HoldAnswer> holds) {}

    Handshake(
            SideChannelAddress address,
            long startedNanos,
            long deadlineNanos,
            List<WaitingOrder> covered,
            OpenClaims claims,
            CompletableFuture<Answer> answer) {
        this(
                address,
                startedNanos,
                deadlineNanos,
                List.copyOf(covered),
                claims,
                new HashSet<>(),
                answer);
    }

    /** Has a read claimed that came after the handshake had begun, if there is still time. */
    void join(WaitingOrder order, HoldQuestion claim) {
        if (!joined.contains(order) && !covered.contains(order) && claims.join(claim)) {
            joined.add(order);
        }
    }
}
