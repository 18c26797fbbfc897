package dev.dormouse.connector;

import java.util.List;

/**
 * The connector's half that lives beside an engine's scheduler: decides what to read from other
 * engines, holds blocks for engines that will read from this one, and publishes what they need to
 * do so.
 *
 * <p>Single-threaded: the engine core's thread calls every method. None of them waits.
 */
public interface SchedulerConnector extends AutoCloseable {
    /**
     * A request arrived and waits to be scheduled; its producer's lease is renewed from now on.
     * Parameters that {@linkplain KvTransferParams#problem() cannot be understood} are logged, and
     * treated as if they asked for no read.
     */
    void onArrival(ConnectorRequest request);

    /**
     * How many prompt tokens beyond {@code localTokens} another engine holds for this request: a
     * prefill engine its prompt, or a decode engine the beginning of it. No effect; may be called
     * again.
     *
     * @param localTokens tokens found in this engine's own cache, a multiple of the block size
     * @return 0 if there is nothing to read; otherwise the request must wait for the read once its
     *     blocks are allocated
     */
    int externalTokens(ConnectorRequest request, int localTokens);

    /**
     * The scheduler allocated blocks for a request's prompt. Call it for every request, also if
     * {@code externalTokens} is 0: a producer that is not read is told so. A request is read at
     * most once, also across preemption.
     *
     * @param blocks the request's whole block table
     * @param localTokens tokens that this engine's own cache provides, a multiple of the block size
     * @param externalTokens what {@link #externalTokens} answered and the scheduler accepted
     */
    void onAllocated(ConnectorRequest request, int[] blocks, int localTokens, int externalTokens);

    /**
     * What the workers shall do next; the same object goes to every rank. Clears what it returns.
     */
    ConnectorStep step();

    /** The merged report of all ranks: each id once all ranks are done with it. */
    void onReport(WorkerReport report);

    /**
     * A request ended.
     *
     * @param blocks its blocks; empty if it never had any
     * @param computedTokens tokens whose K and V those blocks hold, of the prompt and the output
     * @return whether the blocks must be held until a report names the request as sent, and what to
     *     give the client
     */
    HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens);

    /**
     * Ends a hold for a next turn before its time, since its room is needed: only one that no
     * reader relies on, because none has claimed it and none may read without a claim.
     *
     * @param requestId a request that is held
     * @return true if a report will soon name it in {@code finishedSending}; false if it stays
     */
    boolean endHold(String requestId);

    /**
     * Publishes every rank's payload, raises the registration epoch by one, and stamps it on all of
     * them. The first epoch of a process is above all of an earlier one, as long as the machine's
     * clock is not set back. The side channel serves them from the moment this returns. The first
     * call opens the side channel.
     *
     * @throws SideChannelException if the side channel's address cannot be bound
     */
    void publish(List<RankPayload> payloads);

    /**
     * Stops serving payloads: until the next {@link #publish} a handshake is refused, since the
     * memory that the payloads describe is about to go.
     */
    void withdraw();

    /**
     * Takes back what is held for readers, so that the KV cache can sleep before leases end:
     * {@linkplain #withdraw withdraws}, and has every engine that was given the payloads stop
     * reading. When all of them have said so, the held requests are reported as sent. If somebody
     * does not answer, or cannot be asked, they are held until their lease ends, which a Dormouse
     * reader does not outlast. Only {@link #publish} lets engines read again.
     */
    void revoke();

    /**
     * Whether the engine waits to give its KV cache away: as long as it does, no reader's renewal
     * prolongs a hold.
     */
    void drain(boolean draining);

    /** The current registration epoch; before the first {@link #publish}, the one below it. */
    long epoch();

    /** Requests that have ended and whose blocks are held for a reader. */
    int heldRequests();

    /** The port on which the side channel listens, 0 before the first {@link #publish}. */
    int sideChannelPort();

    /** Closes the side channel. Idempotent. */
    @Override
    void close();
}
