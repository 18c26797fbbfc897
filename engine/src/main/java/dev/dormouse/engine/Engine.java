package dev.dormouse.engine;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * One serving engine: a model, its KV cache, and the loop that computes with them.
 *
 * <p>Thread-safe; no method blocks on computation. Futures complete on the engine's thread: attach
 * only short continuations. A transition that cannot be made completes its future with a {@link
 * TransitionRefusedException}, and changes nothing.
 */
public interface Engine extends AutoCloseable {
    /** What this engine serves. */
    EngineInfo info();

    /**
     * Hands in a request. All that becomes of it, a refusal too, is told to {@code listener}.
     *
     * @throws IllegalArgumentException if another request with this id is live
     */
    void submit(GenerationRequest request, GenerationListener listener);

    /** Ends a request with {@link FinishReason#ABORT}; unknown or ended ids are ignored. */
    void abort(String requestId);

    /**
     * Falls asleep. The future completes after the memory is gone.
     *
     * @param level 0 pauses only; 1 gives the KV cache back and keeps the weights; 2 gives both
     *     back
     * @param mode what becomes of requests in flight
     */
    CompletableFuture<TransitionReport> sleep(int level, PauseMode mode);

    /**
     * Wakes. Scheduling resumes once every tag is back.
     *
     * @param tags what to wake, or null for everything
     */
    CompletableFuture<TransitionReport> wake(@Nullable Set<WakeTag> tags);

    /**
     * Gives the KV cache back and keeps the weights usable; needs a completed pause and no
     * requests.
     */
    CompletableFuture<TransitionReport> releaseKvCacheMemory();

    /** Stops scheduling. The future completes when nothing computes any more. */
    CompletableFuture<TransitionReport> pause(PauseMode mode, boolean clearCache);

    /** Undoes a pause. */
    CompletableFuture<TransitionReport> resume();

    /** Forgets every cached prefix that no request uses. */
    CompletableFuture<TransitionReport> resetPrefixCache();

    /** The engine's state now. */
    EngineState state();

    /** Figures for metrics; cheap. */
    EngineStatistics statistics();

    /** Ends requests, then workers, connector and memory. Idempotent. */
    @Override
    void close();
}
