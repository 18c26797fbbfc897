package dev.dormouse.engine.core;

import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.kv.BlockManager;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Decides what each step computes: first one token of every sequence that generates, then chunks of
 * prompts, then new sequences in order of {@linkplain Sequence#URGENCY urgency}, which is that of
 * arrival unless requests have priorities.
 *
 * <p>A sequence is admitted with blocks for all its tokens so far. One that needs a block when none
 * is left waits for what is held for a next turn and can go, else it takes one from the least
 * urgent, which goes back to its place in the queue and is computed again later. Sequences that
 * wait for a read count as admitted, so they find a place when the read ends; and since whoever has
 * blocks runs, reads, or is held for a bounded time, the queue always moves on.
 */
final class Scheduler {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    private final EngineConfig config;
    private final BlockManager blocks;
    private final RemoteKv remote;
    private final Counters counters;
    private final Map<String, Sequence> live = new HashMap<>();
    private final NavigableSet<Sequence> waiting = new TreeSet<>(Sequence.URGENCY);
    private final List<Sequence> running = new ArrayList<>();
    private boolean frozen;

    Scheduler(EngineConfig config, BlockManager blocks, RemoteKv remote, Counters counters) {
        this.config = config;
        this.blocks = blocks;
        this.remote = remote;
        this.counters = counters;
    }

    /** Sequences that have not ended. */
    int liveCount() {
        return live.size();
    }

    /** The clients' ids of all live requests, the oldest first. */
    List<String> liveIds() {
        return liveSequences().stream().map(Sequence::requestId).toList();
    }

    int waitingCount() {
        return waiting.size();
    }

    int runningCount() {
        return running.size();
    }

    /** All live sequences, the oldest first. */
    private List<Sequence> liveSequences() {
        return live.values().stream().sorted(Comparator.comparingLong(Sequence::order)).toList();
    }

    @Nullable Sequence find(String requestId) {
        return live.get(requestId);
    }

    /** While frozen nothing is computed and nothing admitted. */
    void freeze(boolean freeze) {
        frozen = freeze;
    }

    /** Puts a new sequence into the queue. */
    void add(Sequence sequence) {
        live.put(sequence.requestId(), sequence);
        waiting.add(sequence);
        counters.promptTokens += sequence.promptTokens();
        remote.onArrival(sequence);
    }

    /** Decides the next step. */
    Batch schedule() {
        if (frozen) {
            return Batch.EMPTY;
        }
        List<Batch.Part> parts = new ArrayList<>();
        StepBudget budget = new StepBudget(config.maxBatchedTokens());
        for (int i = 0; i < running.size() && !budget.isSpent(); i++) {
            Sequence sequence = running.get(i);
            if (sequence.uncomputed() > 1) {
                continue;
            }
            if (findRoom(sequence)) {
                parts.add(new Batch.Part(sequence, budget.take(sequence)));
            }
        }
        for (Sequence sequence : running) {
            int tokens = sequence.uncomputed() > 1 ? budget.take(sequence) : 0;
            if (tokens > 0) {
                parts.add(new Batch.Part(sequence, tokens));
            }
        }
        admit(parts, budget);
        if (parts.isEmpty() && !waiting.isEmpty() && running.isEmpty() && remote.holdsNothing()) {
            throw new IllegalStateException(
                    "schedule: nothing runs, but the first of %d waiting requests finds no room in %d free of %d KV blocks"
                            .formatted(waiting.size(), blocks.freeBlocks(), blocks.blocks()));
        }
        return new Batch(parts);
    }

    /**
     * Grows the sequence's table for its next token. If no block is left it waits for those of a
     * hold that can end, or takes the least urgent one's; false if it has no room in this step.
     */
    private boolean findRoom(Sequence sequence) {
        while (sequence.status() == Sequence.Status.RUNNING) {
            if (blocks.grow(sequence.blocks(), sequence.length())) {
                return true;
            }
            if (remote.makeRoom(1)) {
                return false;
            }
            preempt(running.getLast());
        }
        return false;
    }

    private void admit(List<Batch.Part> parts, StepBudget budget) {
        while (!waiting.isEmpty()
                && running.size() + remote.receivingCount() < config.maxSequences()) {
            Sequence sequence = waiting.first();
            int cached = blocks.cachedTokens(sequence.tokens(), sequence.reusableTokens());
            int external = remote.externalTokens(sequence, cached);
            if (external == 0 && !budget.hasRoomFor(sequence)) {
                return;
            }
            if (!blocks.allocate(sequence.blocks(), sequence.tokens(), cached, sequence.length())) {
                int needed = blocks.blocksFor(sequence.length() - cached);
                boolean _ = remote.makeRoom(Math.max(1, needed - blocks.freeBlocks()));
                return;
            }
            waiting.remove(sequence);
            if (config.prefixCaching() && !sequence.wasAdmitted()) {
                counters.prefixCacheQueries += sequence.promptTokens();
                counters.prefixCacheHits += cached;
            }
            sequence.admit(cached, external);
            remote.onAllocated(sequence, cached, external);
            if (external > 0) {
                sequence.become(Sequence.Status.RECEIVING);
            } else {
                run(sequence);
                parts.add(new Batch.Part(sequence, budget.take(sequence)));
            }
        }
    }

    /** Records that the step's tokens have their K and V in the cache. */
    void computed(Batch batch) {
        for (Batch.Part part : batch.parts()) {
            Sequence sequence = part.sequence();
            counters.computedPromptTokens += sequence.computed(part.tokens());
            blocks.cacheFullBlocks(sequence.blocks(), sequence.tokens(), sequence.computed());
        }
    }

    /**
     * Takes what the workers report: frees blocks, and goes on with sequences that were read.
     *
     * @return of these, the ones that take their {@linkplain Sequence#knowsFirstToken first token}
     *     now
     */
    List<Sequence> onReport(WorkerReport report) {
        List<Sequence> taking = new ArrayList<>();
        for (RemoteKv.Received received : remote.onReport(report)) {
            Sequence sequence = received.sequence();
            switch (received.outcome()) {
                case USABLE -> {
                    run(sequence);
                    counters.remotePromptTokens += sequence.externalTokens();
                    sequence.received();
                    if (!frozen && sequence.knowsFirstToken()) {
                        blocks.cacheFullBlocks(
                                sequence.blocks(), sequence.tokens(), sequence.promptTokens());
                        taking.add(sequence);
                    }
                }
                case FAILED -> {
                    run(sequence);
                    failUnlessRecomputed(sequence, received.reason());
                }
                case QUARANTINED -> {
                    sequence.forbidRemoteRead();
                    sequence.become(Sequence.Status.WAITING);
                    waiting.add(sequence);
                    failUnlessRecomputed(sequence, received.reason());
                }
            }
        }
        return taking;
    }

    private void failUnlessRecomputed(Sequence sequence, String reason) {
        if (!config.recomputeFailedLoads() && !sequence.isPrefill()) {
            // The reason may name a peer's address, which is no business of the client's.
            LOG.log(
                    Level.WARNING,
                    "the prompt''s KV could not be read: request={0} cause={1}",
                    sequence.requestId(),
                    reason.isEmpty() ? "unknown" : reason);
            fail(
                    sequence,
                    FailureKind.KV_TRANSFER_FAILED,
                    "the KV cache of the prompt could not be read from the prefill engine; the"
                            + " log of the engine that reads it has the cause, under request="
                            + sequence.requestId());
        }
    }

    /**
     * Removes a sequence; the caller tells its client.
     *
     * @return what the client shall hand to another engine, or null
     */
    @Nullable KvTransferParams end(Sequence sequence, FinishKind kind) {
        live.remove(sequence.requestId());
        switch (sequence.status()) {
            case WAITING -> waiting.remove(sequence);
            case RUNNING -> running.remove(sequence);
            case RECEIVING, ENDED -> {}
        }
        sequence.become(Sequence.Status.ENDED);
        return remote.onEnded(sequence, kind);
    }

    /** Ends every live sequence as its client would. */
    void abortAll() {
        Cleanup cleanup = new Cleanup();
        liveSequences().forEach(sequence -> cleanup.run(() -> abort(sequence)));
        cleanup.finish();
    }

    /** Ends a sequence as its client would; its client is told in any case. */
    void abort(Sequence sequence) {
        @Nullable KvTransferParams params = null;
        try {
            params = end(sequence, FinishKind.ABORTED);
        } finally {
            sequence.tellAborted(params);
        }
    }

    /** Ends every live sequence, since the engine has failed. */
    void failAll(String message) {
        Cleanup cleanup = new Cleanup();
        for (Sequence sequence : liveSequences()) {
            cleanup.run(() -> fail(sequence, FailureKind.INTERNAL, message));
        }
        cleanup.finish();
    }

    /** Ends a sequence that cannot go on; its client is told in any case. */
    void fail(Sequence sequence, FailureKind kind, String message) {
        try {
            end(sequence, FinishKind.FAILED);
        } finally {
            sequence.tellFailed(kind, message);
        }
    }

    /**
     * Takes the blocks of all running sequences; their tokens so far are kept, and computed again
     * later. What has not been read from another engine by now will not be read: nobody renews the
     * lease meanwhile.
     */
    void preemptAll() {
        while (!running.isEmpty()) {
            preempt(running.getLast());
        }
        waiting.forEach(Sequence::forbidRemoteRead);
    }

    /** Forgets cached prefixes; answers how many blocks were known. */
    int resetPrefixCache() {
        return blocks.resetPrefixCache();
    }

    /** True if a prefix is cached. */
    boolean hasCachedPrefixes() {
        return blocks.hasCachedPrefixes();
    }

    private void preempt(Sequence victim) {
        running.remove(victim);
        blocks.free(victim.blocks());
        victim.lostBlocks();
        victim.become(Sequence.Status.WAITING);
        waiting.add(victim);
        counters.preemptions++;
    }

    /** Puts a sequence among the running ones, the most urgent of which comes first. */
    private void run(Sequence sequence) {
        int at = running.size();
        while (at > 0 && Sequence.URGENCY.compare(running.get(at - 1), sequence) > 0) {
            at--;
        }
        running.add(at, sequence);
        sequence.become(Sequence.Status.RUNNING);
    }
}
