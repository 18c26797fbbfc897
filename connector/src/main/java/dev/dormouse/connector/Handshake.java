package dev.dormouse.connector;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A question to a peer's side channel that is under way. Only {@link #answer} is touched by the
 * handshake thread.
 *
 * @param address where the peer is asked
 * @param startedNanos when
 * @param deadlineNanos when it has failed, whatever its thread does
 * @param covered the reads that waited for these ranks when it started: for them, the answer is new
 *     enough
 * @param answer what the peer told, decoded and checked, or why there is nothing
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long deadlineNanos,
        List<WaitingOrder> covered,
        CompletableFuture<Answer> answer) {
    /**
     * What a peer told.
     *
     * @param engine its ranks and its clock; null if only claims were made
     * @param holds what it said of the requests that were claimed
     */
    record Answer(@Nullable FetchedEngine engine, Map<HoldQuestion, HoldAnswer> holds) {}

    Handshake {
        covered = List.copyOf(covered);
    }
}
