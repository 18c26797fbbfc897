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
 * @param answers what the peer said, undecoded, or why it said nothing
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long namedEpoch,
        List<WaitingRead> covered,
        CompletableFuture<HandshakeAnswers> answers) {
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
        List<String> doubtful =
                covered.stream()
                        .filter(WaitingRead::needsHoldAnswer)
                        .map(read -> read.order().remote().requestId())
                        .distinct()
                        .toList();
        CompletableFuture<HandshakeAnswers> answers = new CompletableFuture<>();
        threads.execute(
                () -> {
                    try {
                        answers.complete(client.ask(address, ranks, doubtful));
                    } catch (RuntimeException | Error e) {
                        answers.completeExceptionally(e);
                    }
                });
        return new Handshake(address, nowNanos, namedEpoch, covered, answers);
    }
}
