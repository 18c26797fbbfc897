package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Asks peers on behalf of one rank. What a peer answers is decoded and checked on the handshake
 * thread: it may be large, and it may be made to be slow.
 *
 * @param config of this engine
 * @param tpRank this rank
 * @param local its KV cache
 * @param transport is told what it will have to load
 * @param client asks
 * @param threads where it is waited for the answer
 * @param wake is run on their threads when a peer has answered, or has not
 * @param nanoClock the clock of this rank, also read on handshake threads
 */
record Handshakes(
        ConnectorConfig config,
        int tpRank,
        KvCacheRegions local,
        KvTransport transport,
        HandshakeClient client,
        HandshakeThreads threads,
        Runnable wake,
        LongSupplier nanoClock) {
    /**
     * Which of a peer's ranks have this rank's KV heads.
     *
     * @param remoteSize the peer's tensor parallel size
     * @throws ConnectorException if engines of these sizes do not fit together
     */
    RankMapping mapping(int remoteSize) {
        RankMapping mapping =
                RankMapping.of(tpRank, config.tpSize(), remoteSize, config.factors().kvHeads());
        return config.factors().isPush() ? mapping.withoutRepeats() : mapping;
    }

    /**
     * Starts one. Its time limit begins now, however long it waits for its turn.
     *
     * @param remoteSize the peer's tensor parallel size
     * @param epoch a registration epoch that a request named, 0 for none
     * @param engineWaiting all orders that wait for the engine
     * @param subscriber this engine, as a holder can reach it; null if it cannot
     * @throws ConnectorException if engines of these sizes do not fit together
     * @throws RejectedExecutionException if too many are under way
     */
    Handshake start(
            String engineId,
            SideChannelAddress address,
            int remoteSize,
            long epoch,
            List<WaitingOrder> engineWaiting,
            Subscription.@Nullable Reader subscriber,
            long nowNanos) {
        RankMapping mapping = mapping(remoteSize);
        List<WaitingOrder> covered = covered(engineWaiting, remoteSize);
        long namedEpoch =
                covered.stream()
                        .mapToLong(read -> read.order().remote().epoch())
                        .reduce(epoch, Math::max);
        OpenClaims claims = claims(covered);
        long deadlineNanos = nowNanos + config.handshakeTimeout().toNanos();
        return start(
                address,
                nowNanos,
                deadlineNanos,
                covered,
                claims,
                () -> {
                    HandshakeAnswers answers =
                            client.ask(
                                    address,
                                    mapping.sources(),
                                    claims,
                                    subscriber,
                                    left(deadlineNanos));
                    FetchedEngine engine =
                            FetchedEngine.decode(
                                    engineId, address, answers, mapping, namedEpoch, config, local);
                    // here, since an engine's step must not wait for peers
                    engine.ranks().forEach(rank -> transport.prepareLoad(rank.agentMetadata()));
                    return new Handshake.Answer(engine, answers.holds());
                });
    }

    /**
     * Claims what waits to be read from a peer of our own kind that is loaded.
     *
     * @param remoteSize the peer's tensor parallel size
     * @throws RejectedExecutionException if too much is under way
     */
    Handshake claim(
            SideChannelAddress address,
            int remoteSize,
            List<WaitingOrder> engineWaiting,
            long nowNanos) {
        List<WaitingOrder> covered = covered(engineWaiting, remoteSize);
        OpenClaims claims = claims(covered);
        long deadlineNanos = nowNanos + config.handshakeTimeout().toNanos();
        return start(
                address,
                nowNanos,
                deadlineNanos,
                covered,
                claims,
                () ->
                        new Handshake.Answer(
                                null, client.claim(address, claims, left(deadlineNanos))));
    }

    /**
     * Asks a peer of our own kind this product's own questions.
     *
     * @return the answers, in order
     * @throws RejectedExecutionException if too much is under way
     */
    CompletableFuture<List<byte[]>> ask(
            SideChannelAddress address, List<byte[]> questions, long nowNanos) {
        long deadlineNanos = nowNanos + config.handshakeTimeout().toNanos();
        return run(address, () -> client.askAll(address, questions, left(deadlineNanos)));
    }

    private Handshake start(
            SideChannelAddress address,
            long nowNanos,
            long deadlineNanos,
            List<WaitingOrder> covered,
            OpenClaims claims,
            Supplier<Handshake.Answer> conversation) {
        return new Handshake(
                address, nowNanos, deadlineNanos, covered, claims, run(address, conversation));
    }

    private <T> CompletableFuture<T> run(SideChannelAddress address, Supplier<T> conversation) {
        CompletableFuture<T> answer = new CompletableFuture<>();
        threads.execute(
                address,
                () -> {
                    try {
                        answer.complete(conversation.get());
                    } catch (RuntimeException | Error e) {
                        answer.completeExceptionally(e);
                    }
                    wake.run();
                });
        return answer;
    }

    /** The oldest reads from ranks of this size, as many as one conversation bears. */
    private static List<WaitingOrder> covered(List<WaitingOrder> waiting, int remoteSize) {
        return waiting.stream()
                .filter(read -> read.namesSize(remoteSize))
                .limit(OpenClaims.MAX)
                .toList();
    }

    private OpenClaims claims(List<WaitingOrder> covered) {
        return new OpenClaims(
                covered.stream()
                        .filter(WaitingOrder::needsClaim)
                        .map(read -> HoldQuestion.of(read.order(), config.instanceId()))
                        .toList());
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
