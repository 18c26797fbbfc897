package dev.dormouse.engine.core;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationListener;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The engine as other threads see it, and the thread that drives its core. */
final class LocalEngine implements Engine {
    /** Transitions that may wait for one another. */
    static final int MAX_PENDING_TRANSITIONS = 64;

    /** Refused requests that may wait to be told; the leases of the others run out. */
    static final int MAX_PENDING_DECLINES = 256;

    /** For transfers that end only when they are polled; others, and answers of peers, wake. */
    private static final Duration READ_POLL = Duration.ofNanos(200_000);

    private static final Duration PEER_POLL = Duration.ofMillis(2);
    private static final Duration CONNECTION_POLL = Duration.ofMillis(200);
    private static final Duration ASLEEP_POLL = Duration.ofSeconds(1);
    private static final Duration IDLE = Duration.ofMinutes(1);

    private final EngineInfo info;
    private final EngineCore core;
    private final Inbox inbox;
    private final Lifecycle life;
    private final StatisticsBoard statistics;
    private final int liveLimit;
    private final ConcurrentMap<String, Life> live = new ConcurrentHashMap<>();
    private final AtomicInteger pendingTransitions = new AtomicInteger();
    private final Semaphore declines = new Semaphore(MAX_PENDING_DECLINES);
    private final CompletableFuture<@Nullable Void> opened = new CompletableFuture<>();
    private final CompletableFuture<@Nullable Void> ended = new CompletableFuture<>();
    private final Thread thread;

    /** An engine that is not started yet. */
    LocalEngine(
            EngineInfo info,
            EngineCore core,
            Inbox inbox,
            Lifecycle life,
            StatisticsBoard statistics,
            int liveLimit) {
        this.info = info;
        this.core = core;
        this.inbox = inbox;
        this.life = life;
        this.statistics = statistics;
        this.liveLimit = liveLimit;
        this.thread = Thread.ofPlatform().name("dormouse-engine").unstarted(this::run);
    }

    /** Room for every message that can be under way at once: two of each request. */
    static int inboxCapacity(int liveLimit) {
        return 2 * liveLimit + 2 * MAX_PENDING_TRANSITIONS + MAX_PENDING_DECLINES;
    }

    private enum Life {
        SUBMITTED,
        ABORTING
    }

    /** The loop, for whoever drives it instead of the engine's own thread. */
    EngineCore core() {
        return core;
    }

    /** Starts the thread, and returns when the engine serves, or when it has ended again. */
    void start() {
        thread.start();
        try {
            join(opened);
        } catch (RuntimeException | Error e) {
            try {
                join(ended);
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    @Override
    public EngineInfo info() {
        return info;
    }

    @Override
    public void submit(GenerationRequest request, GenerationListener listener) {
        String id = request.id();
        if (live.putIfAbsent(id, Life.SUBMITTED) != null) {
            throw new IllegalArgumentException("submit: a request with the id " + id + " is live");
        }
        GenerationListener tracked =
                event -> {
                    if (!(event instanceof GenerationEvent.Tokens)) {
                        live.remove(id);
                    }
                    listener.onEvent(event);
                };
        GenerationEvent.Failed refusal = refusal();
        if (refusal == null && !inbox.offer(new Command.Submit(request, tracked))) {
            refusal = Lifecycle.unavailable("the engine is closed");
        }
        if (refusal != null) {
            if (request.kvTransferParams() != null) {
                decline(request.kvTransferParams());
            }
            tracked.onEvent(refusal);
        }
    }

    /**
     * Why not even the engine's thread needs to look at a new request: it may be busy for seconds
     * while it falls asleep or wakes.
     */
    private GenerationEvent.@Nullable Failed refusal() {
        int count = live.size();
        return count > liveLimit
                ? Lifecycle.unavailable(
                        "%d requests are live already, the limit is %d; try again later"
                                .formatted(count - 1, liveLimit))
                : life.holdsRequests() ? null : life.refusal();
    }

    @Override
    public void decline(KvTransferParams params) {
        if (params.remotePrefill()
                && declines.tryAcquire()
                && !inbox.offer(new Command.Decline(params, declines::release))) {
            declines.release();
        }
    }

    @Override
    public void abort(String requestId) {
        if (live.replace(requestId, Life.SUBMITTED, Life.ABORTING)) {
            inbox.offer(new Command.Abort(requestId));
        }
    }

    @Override
    public CompletableFuture<TransitionReport> sleep(int level, PauseMode mode) {
        return change(new Transition.Sleep(level, mode));
    }

    @Override
    public CompletableFuture<TransitionReport> wake(@Nullable Set<WakeTag> tags) {
        return change(new Transition.Wake(tags == null ? null : Set.copyOf(tags)));
    }

    @Override
    public CompletableFuture<TransitionReport> releaseKvCacheMemory() {
        return change(new Transition.ReleaseKvCache());
    }

    @Override
    public CompletableFuture<TransitionReport> pause(PauseMode mode, boolean clearCache) {
        return change(new Transition.Pause(mode, clearCache));
    }

    @Override
    public CompletableFuture<TransitionReport> resume() {
        return change(new Transition.Resume());
    }

    @Override
    public CompletableFuture<TransitionReport> resetPrefixCache() {
        return change(new Transition.ResetPrefixCache());
    }

    @Override
    public CompletableFuture<TransitionReport> windDown() {
        return change(new Transition.WindDown());
    }

    @Override
    public EngineState state() {
        return life.state();
    }

    @Override
    public EngineStatistics statistics() {
        return statistics.read();
    }

    @Override
    public void close() {
        inbox.offer(new Command.Close());
        if (Thread.currentThread() != thread) {
            join(ended);
        }
    }

    private CompletableFuture<TransitionReport> change(Transition transition) {
        CompletableFuture<TransitionReport> outcome = new CompletableFuture<>();
        if (pendingTransitions.incrementAndGet() > MAX_PENDING_TRANSITIONS) {
            pendingTransitions.decrementAndGet();
            outcome.completeExceptionally(
                    new TransitionRefusedException(
                            TransitionRefusedException.Reason.CONFLICT,
                            MAX_PENDING_TRANSITIONS
                                    + " transitions wait already; wait for them to end"));
            return outcome;
        }
        Command.Change change = new Command.Change(transition, outcome);
        var _ = outcome.whenComplete((_, _) -> pendingTransitions.decrementAndGet());
        if (!inbox.offer(change)) {
            Transitions.refuseClosed(change);
        }
        return outcome;
    }

    private void run() {
        try {
            core.open();
            opened.complete(null);
            drive();
        } catch (RuntimeException | Error e) {
            opened.completeExceptionally(e);
        } finally {
            closeCore();
        }
    }

    private void drive() {
        while (!core.isClosing()) {
            int work = core.stepOrFail();
            if (work == 0 && !core.isClosing()) {
                try {
                    inbox.await(pause().toNanos());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return;
                }
            }
        }
    }

    private void closeCore() {
        try {
            core.close();
            ended.complete(null);
        } catch (RuntimeException | Error e) {
            ended.completeExceptionally(e);
        }
    }

    private Duration pause() {
        return switch (core.expectation()) {
            case READ -> READ_POLL;
            case PEER -> PEER_POLL;
            case CONNECTION -> CONNECTION_POLL;
            case LITTLE -> ASLEEP_POLL;
            case NOTHING -> IDLE;
        };
    }

    private static void join(CompletableFuture<@Nullable Void> future) {
        try {
            future.join();
        } catch (CompletionException e) {
            switch (e.getCause()) {
                case RuntimeException cause -> throw cause;
                case Error cause -> throw cause;
                case null, default -> throw e;
            }
        }
    }
}
