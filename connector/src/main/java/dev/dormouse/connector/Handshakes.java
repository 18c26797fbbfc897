package dev.dormouse.connector;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Asks peers on behalf of one rank. What a peer answers is decoded and checked on the handshake
 * thread: it may be large, and it may be made to be slow.
 *
 * @param config of this engine
 * @param tpRank this rank
 * @param local its KV cache
 * @param client asks
 * @param threads where it is waited for the answer
 * @param nanoClock the clock of this rank, also read on handshake threads
 */
record Handshakes(
        ConnectorConfig config,
        int tpRank,
        KvCacheRegions local,
        HandshakeClient client,
        HandshakeThreads threads,
        LongSupplier nanoClock) {
    /**
     * Which of a peer's ranks have this rank's KV heads.
     *
     * @param remoteSize the peer's tensor parallel size
     * @throws ConnectorException if engines of these sizes do not fit together
     */
    RankMapping mapping(int remoteSize) {
        return RankMapping.of(tpRank, config.tpSize(), remoteSize, config.factors().kvHeads());
    }

    /**
     * Starts one. Its time limit begins now, however long it waits for its turn.
     *
     * @param remoteSize the peer's tensor parallel size
     * @param engineWaiting all reads that wait for the engine
     * @param subscriber this engine, as a holder can reach it; null if it cannot
     * @throws ConnectorException if engines of these sizes do not fit together
     * @throws RejectedExecutionException if too many are under way
     */
    Handshake start(
            String engineId,
            SideChannelAddress address,
            int remoteSize,
            List<WaitingRead> engineWaiting,
            Subscription.@Nullable Reader subscriber,
            long nowNanos) {
        RankMapping mapping = mapping(remoteSize);
        List<WaitingRead> covered =
                engineWaiting.stream().filter(read -> read.namesSize(remoteSize)).toList();
        long namedEpoch =
                covered.stream().mapToLong(read -> read.order().remote().epoch()).max().orElse(0);
        List<String> doubtful =
                covered.stream()
                        .filter(WaitingRead::needsHoldAnswer)
                        .map(read -> read.order().remote().requestId())
                        .distinct()
                        .toList();
        long deadlineNanos = nowNanos + config.handshakeTimeout().toNanos();
        CompletableFuture<Handshake.Answer> answer = new CompletableFuture<>();
        threads.execute(
                address,
                () -> {
                    try {
                        HandshakeAnswers answers =
                                client.ask(
                                        address,
                                        mapping.sources(),
                                        doubtful,
                                        subscriber,
                                        left(deadlineNanos));
                        FetchedEngine engine =
                                FetchedEngine.decode(
                                        engineId,
                                        address,
                                        answers,
                                        mapping,
                                        namedEpoch,
                                        config,
                                        local);
                        answer.complete(new Handshake.Answer(engine, answers.holds()));
                    } catch (RuntimeException | Error e) {
                        answer.completeExceptionally(e);
                    }
                });
        return new Handshake(address, nowNanos, deadlineNanos, covered, answer);
    }

    private Duration left(long deadlineNanos) {
        long leftNanos = deadlineNanos - nanoClock.getAsLong();
        if (leftNanos <= 0) {
            throw new ConnectorException(
                    "its turn did not come within " + config.handshakeTimeout());
        }
        return Duration.ofNanos(leftNanos);
    }
}
