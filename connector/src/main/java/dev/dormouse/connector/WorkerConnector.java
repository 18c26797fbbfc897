package dev.dormouse.connector;

import java.time.Duration;

/**
 * The connector's half that lives beside one rank's memory: registers it, loads peers, reads
 * blocks, and counts who has read from it.
 *
 * <p>Single-threaded: the rank's worker thread calls every method. Only {@link #prepareRelease} and
 * {@link #releaseKvCaches} wait.
 */
public interface WorkerConnector extends AutoCloseable {
    /** Registers the rank's KV cache. Called once, before {@link #start}. */
    void registerKvCaches(KvCacheRegions regions);

    /**
     * What peers need to read this rank's KV cache as it is registered now.
     *
     * @throws IllegalStateException while released
     */
    RankPayload payload();

    /**
     * Takes a step's orders. Never waits: a read whose peer is unknown starts after a handshake in
     * the background.
     */
    void start(ConnectorStep step);

    /**
     * Has something run whenever a {@link #poll} may find news that no message of this engine
     * brings: a peer has answered, or a transfer has ended. By any thread, perhaps once too often,
     * and not for all news: whoever waits for some goes on polling.
     *
     * @param wake must neither wait nor throw
     */
    default void wakeWith(Runnable wake) {}

    /** Drives transfers, handshakes and messages, and tells what ended since the last call. */
    WorkerReport poll();

    /**
     * Before any rank's pages go: waits until no transfer of this rank is in flight, no handshake
     * is pending, and no engine of this host maps the KV cache. Everything stays registered, so
     * that if one rank of an engine is not ready the others have only to let it be mapped again, by
     * {@link #restoreKvCaches}. What a push connector had not begun to write or to be written ends,
     * as in any sleep.
     *
     * @throws ReleaseTimeoutException if something is still pending after {@code limit}
     */
    void prepareRelease(Duration limit);

    /**
     * Before the KV cache's pages go: waits until no read of this rank is in flight, no handshake
     * is pending, and no engine of this host maps the KV cache, then releases every prepared list,
     * drops every peer, and deregisters the KV cache. Idempotent.
     *
     * @throws ReleaseTimeoutException if something is still pending after {@code limit}; everything
     *     stays registered and serves
     */
    void releaseKvCaches(Duration limit);

    /**
     * After new pages were mapped: registers the same ranges and rebuilds list and payload. After a
     * release that was only prepared: lets engines of this host map the KV cache again. Idempotent.
     */
    void restoreKvCaches();

    /** True between {@link #releaseKvCaches} and {@link #restoreKvCaches}. */
    boolean isReleased();

    /** Ends the worker's part; does not deregister again what is released. Idempotent. */
    @Override
    void close();
}
