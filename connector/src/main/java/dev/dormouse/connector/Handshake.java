package dev.dormouse.connector;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A question to a peer's side channel that is under way. Only {@link #answer} is touched by the
 * handshake thread.
 *
 * @param address where the peer is asked
 * @param startedNanos when
 * @param deadlineNanos when it has failed, whatever its thread does
 * @param covered the reads that waited for this address when it started: for them, the answer is
 *     new enough
 * @param answer what the peer told, decoded and checked, or why there is nothing
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long deadlineNanos,
        List<WaitingRead> covered,
        CompletableFuture<FetchedEngine> answer) {
    Handshake {
        covered = List.copyOf(covered);
    }
}
