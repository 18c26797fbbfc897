package dev.dormouse.engine;

import dev.dormouse.connector.KvTransferParams;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * One serving engine: a model, its KV cache, and the loop that computes with them.
 *
 * <p>Thread-safe; no method blocks on computation. Futures complete on the engine's thread: attach
 * only short continuations.
 *
 * <h2>Transitions</h2>
 *
 * <p>Transitions are made one after the other, in the order of the calls; a call during a
 * transition waits for its turn. One that cannot be made completes its future with a {@link
 * TransitionRefusedException} and changes nothing, except that requests which its mode ended stay
 * ended. One that waits for requests or readers is given up as UNAVAILABLE after ten minutes, and
 * as a CONFLICT as soon as a resume is called; the engine then goes on as before it. One that finds
 * nothing to do completes with {@code changed} false.
 *
 * <table>
 * <caption>What a call does in each state; "–" changes nothing</caption>
 * <tr><th>call</th><th>AWAKE</th><th>PAUSED</th><th>ASLEEP, level 0</th>
 *     <th>ASLEEP, memory away</th></tr>
 * <tr><td>sleep 0</td><td>ASLEEP</td><td>ASLEEP</td><td>–</td><td>–</td></tr>
 * <tr><td>sleep 1, 2</td><td>ASLEEP</td><td>ASLEEP</td><td>ASLEEP</td>
 *     <td>what is not away yet goes, else –</td></tr>
 * <tr><td>release KV cache</td><td>CONFLICT</td><td>ASLEEP</td><td>ASLEEP</td>
 *     <td>– if the KV cache is away, else it goes</td></tr>
 * <tr><td>wake</td><td>–</td><td>AWAKE if scheduling is among the tags</td>
 *     <td>AWAKE if scheduling is among the tags</td>
 *     <td>the tags come; AWAKE with the last of them</td></tr>
 * <tr><td>pause</td><td>PAUSED</td><td>– if mode and cache are so already, else applies them</td><td>–</td><td>–</td></tr>
 * <tr><td>resume</td><td>–</td><td>AWAKE</td><td>AWAKE</td><td>CONFLICT</td></tr>
 * <tr><td>wind down</td><td>PAUSED</td><td>PAUSED</td><td>–</td><td>–</td></tr>
 * </table>
 *
 * <p>In FAILED every call is a CONFLICT.
 *
 * <p>The KV cache stays, in every mode, while a read from another engine fills its blocks, and
 * while it holds prompts for other engines: until they are read, or their lease ends. What a sleep
 * with mode {@link PauseMode#KEEP} froze is computed again after the wake and goes on with the
 * tokens that it would have had. New requests are refused from the beginning of a sleep, and of a
 * pause unless its mode is {@code KEEP}, to the engine's next AWAKE: as {@link
 * GenerationEvent.FailureKind#PAUSED} as long as requests or readers are waited for and in a pause,
 * otherwise as {@link GenerationEvent.FailureKind#UNAVAILABLE}.
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

    /**
     * Says that a request will not come: the engine that holds its prompt for this one is told, and
     * need not wait for the end of its lease. For requests that are refused before {@link #submit},
     * which does the same for those that it refuses itself. Asleep this does nothing.
     *
     * @param params the request's; ignored if they ask for no read
     */
    void decline(KvTransferParams params);

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

    /**
     * Prepares the end: new requests are refused from now on. The future completes when those that
     * are there have ended, frozen ones too, and no other engine has to do with the blocks; what
     * waits for a wake is not waited for. The engine may be closed without waiting for that.
     */
    CompletableFuture<TransitionReport> windDown();

    /** The engine's state now. */
    EngineState state();

    /** Figures for metrics; cheap. */
    EngineStatistics statistics();

    /** Ends requests, then workers, connector and memory. Idempotent. */
    @Override
    void close();
}
