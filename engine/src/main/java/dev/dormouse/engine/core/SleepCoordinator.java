package dev.dormouse.engine.core;

import dev.dormouse.connector.RankPayload;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.memory.MemoryTag;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Owns the order in which an engine gives its memory back and takes it again.
 *
 * <p>Down: other engines can no longer ask → every rank is ready → every rank lets go of its
 * registration → forget the prefixes → pages go. Up: pages come → weights are read → every rank
 * registers → other engines are told. Either is a transaction over all ranks: if a step fails, what
 * was done is undone, so that either every rank changed or none. If that fails too, the engine says
 * so and stops.
 *
 * <p>The caller has paused scheduling, and has waited until no other engine has to do with the
 * blocks.
 */
final class SleepCoordinator {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    /** For what is still pending on all ranks: twice the time in which a handshake gives up. */
    private static final Duration RELEASE_LIMIT = Duration.ofSeconds(10);

    private final List<Worker> workers;
    private final @Nullable SchedulerConnector connector;
    private final Scheduler scheduler;
    private final Runnable heapTrimmer;
    private final LongSupplier nanoClock;

    /** What other engines were told has been taken back, and nothing else has been told since. */
    private boolean revoked;

    /**
     * Coordinates these ranks.
     *
     * @param heapTrimmer gives what the process does not need back to the machine, since a heap
     *     that stays large would hide the memory that went
     */
    SleepCoordinator(
            List<Worker> workers,
            @Nullable SchedulerConnector connector,
            Scheduler scheduler,
            Runnable heapTrimmer,
            LongSupplier nanoClock) {
        this.workers = workers;
        this.connector = connector;
        this.scheduler = scheduler;
        this.heapTrimmer = heapTrimmer;
        this.nanoClock = nanoClock;
    }

    /** A step failed, and so did undoing it: the ranks are in unknown and different states. */
    static final class BrokenException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        BrokenException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** Whether every rank has the memory. */
    boolean isMapped(MemoryTag tag) {
        for (Worker worker : workers) {
            if (!worker.isMapped(tag)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Gives memory back.
     *
     * @return how many bytes went
     * @throws BrokenException if it failed and could not be undone; any other exception means that
     *     it was undone
     */
    long fallAsleep(Set<MemoryTag> tags, PhaseTimes times) {
        EnumSet<MemoryTag> going = EnumSet.noneOf(MemoryTag.class);
        tags.stream().filter(this::isMapped).forEach(going::add);
        long bytes = 0;
        try {
            if (going.contains(MemoryTag.KV_CACHE)) {
                scheduler.preemptAll();
                letGo();
                times.ended("release");
                scheduler.resetPrefixCache();
            }
            for (Worker worker : workers) {
                bytes += worker.unmap(going);
            }
            times.ended("unmap");
        } catch (RuntimeException failure) {
            undo("sleep", failure, () -> bringBack(going, times));
            throw failure;
        }
        trimHeap();
        times.ended("trim");
        return bytes;
    }

    /** Whether the caller waits to make the KV cache sleep: readers cannot put that off then. */
    void drain(boolean draining) {
        if (connector != null) {
            connector.drain(draining);
        }
    }

    /**
     * Takes back what is held for other engines, which shall not read from this one any more. They
     * answer while the engine steps on.
     */
    void revoke() {
        if (connector != null) {
            revoked = true;
            connector.revoke();
        }
    }

    /** The KV cache stays after all: other engines may read again. */
    void carryOn() {
        if (revoked) {
            publish();
        }
    }

    /** The engine has failed: no other engine shall begin to read from it. Does not throw. */
    void withdraw() {
        if (connector != null) {
            try {
                connector.withdraw();
            } catch (RuntimeException e) {
                LOG.log(Level.ERROR, "could not withdraw what other engines are told", e);
            }
        }
    }

    private void trimHeap() {
        try {
            heapTrimmer.run();
        } catch (RuntimeException e) {
            LOG.log(Level.WARNING, "the heap was not trimmed", e);
        }
    }

    /**
     * Takes memory again; its weights are right and its KV cache known to other engines afterwards.
     *
     * @return how many bytes came
     * @throws BrokenException if it failed and could not be undone; any other exception means that
     *     it was undone
     */
    long wake(Set<MemoryTag> tags, PhaseTimes times) {
        EnumSet<MemoryTag> coming = EnumSet.noneOf(MemoryTag.class);
        tags.stream().filter(tag -> !isMapped(tag)).forEach(coming::add);
        try {
            return bringBack(coming, times);
        } catch (RuntimeException failure) {
            undo("wake", failure, () -> takeAway(coming));
            throw failure;
        }
    }

    private long bringBack(Set<MemoryTag> tags, PhaseTimes times) {
        long bytes = 0;
        for (Worker worker : workers) {
            boolean weightsComing =
                    tags.contains(MemoryTag.WEIGHTS) && !worker.isMapped(MemoryTag.WEIGHTS);
            bytes += worker.map(tags);
            times.ended("map");
            if (weightsComing) {
                worker.loadWeights();
                times.ended("load_weights");
            }
        }
        if (tags.contains(MemoryTag.KV_CACHE)) {
            workers.forEach(Worker::restoreKvCaches);
            times.ended("restore");
            publish();
            times.ended("publish");
        }
        return bytes;
    }

    private void takeAway(Set<MemoryTag> tags) {
        if (tags.contains(MemoryTag.KV_CACHE)) {
            letGo();
        }
        workers.forEach(worker -> worker.unmap(tags));
    }

    /**
     * No engine can begin to read, and then no rank has anything left that knows the pages. No rank
     * lets go before all of them can.
     */
    private void letGo() {
        if (connector != null) {
            connector.withdraw();
        }
        long deadlineNanos = nanoClock.getAsLong() + RELEASE_LIMIT.toNanos();
        workers.forEach(worker -> worker.prepareRelease(left(deadlineNanos)));
        workers.forEach(worker -> worker.releaseKvCaches(left(deadlineNanos)));
    }

    private Duration left(long deadlineNanos) {
        return Duration.ofNanos(Math.max(0, deadlineNanos - nanoClock.getAsLong()));
    }

    /** Tells other engines what all ranks registered; raises the epoch by one. */
    void publish() {
        if (connector != null) {
            List<RankPayload> payloads = workers.stream().map(Worker::payload).toList();
            connector.publish(payloads);
            revoked = false;
        }
    }

    private static void undo(String operation, RuntimeException failure, Runnable undo) {
        LOG.log(Level.WARNING, () -> operation + " failed and is being undone", failure);
        try {
            undo.run();
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
            throw new BrokenException(
                    operation
                            + " failed, and could not be undone: "
                            + second.getMessage()
                            + "; restart the engine",
                    failure);
        }
    }
}
