package dev.dormouse.connector;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/**
 * A question to a peer's side channel that is under way. Only {@link #answers} is touched by the
 * handshake thread.
 *
 * @param address where the peer is asked
 * @param startedNanos when
 * @param namedEpoch the newest epoch that a waiting request named when it started
 * @param covered the reads that waited for this address when it started: for them, the answer is
 *     new enough
 * @param answers the undecoded payloads, or why there are none
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long namedEpoch,
        List<WaitingRead> covered,
        CompletableFuture<List<byte[]>> answers) {
    Handshake {
        covered = List.copyOf(covered);
    }

    /**
     * Starts one.
     *
     * @param engineWaiting all reads that wait for the engine
     * @throws RejectedExecutionException if too many are under way
     */
    static Handshake start(
            SideChannelAddress address,
            List<RankId> ranks,
            List<WaitingRead> engineWaiting,
            long nowNanos,
            HandshakeClient client,
            Executor threads) {
        List<WaitingRead> covered =
                engineWaiting.stream().filter(read -> read.names(address)).toList();
        long namedEpoch =
                covered.stream().mapToLong(read -> read.order().remote().epoch()).max().orElse(0);
        CompletableFuture<List<byte[]>> answers = new CompletableFuture<>();
        threads.execute(
                () -> {
                    try {
                        answers.complete(client.fetch(address, ranks));
                    } catch (RuntimeException | Error e) {
                        answers.completeExceptionally(e);
                    }
                });
        return new Handshake(address, nowNanos, namedEpoch, covered, answers);
    }
}
