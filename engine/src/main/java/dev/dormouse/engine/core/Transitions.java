package dev.dormouse.engine.core;

import static dev.dormouse.engine.TransitionRefusedException.Reason.CONFLICT;
import static dev.dormouse.engine.TransitionRefusedException.Reason.INVALID;
import static dev.dormouse.engine.TransitionRefusedException.Reason.UNAVAILABLE;

import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.memory.MemoryTag;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes the engine's transitions, one after the other in the order of the calls, and knows its
 * state.
 *
 * <p>A transition that lets requests end first is begun in one step of the engine and completed in
 * a later one; the engine goes on stepping in between. All others take one step.
 */
final class Transitions {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    private final boolean sleepMode;
    private final Scheduler scheduler;
    private final RemoteKv remote;
    private final SleepCoordinator coordinator;
    private final StatisticsBoard statistics;
    private final LongSupplier nanoClock;
    private final Deque<Command.Change> queue = new ArrayDeque<>();
    private final EnumSet<WakeTag> asleep = EnumSet.noneOf(WakeTag.class);
    private Phase phase = Phase.AWAKE;
    private Admission admission = Admission.OPEN;
    private @Nullable Draining draining;
    private volatile EngineState state = new EngineState(Phase.AWAKE, 0, Set.of(), false);

    Transitions(
            boolean sleepMode,
            Scheduler scheduler,
            RemoteKv remote,
            SleepCoordinator coordinator,
            StatisticsBoard statistics,
            LongSupplier nanoClock) {
        this.sleepMode = sleepMode;
        this.scheduler = scheduler;
        this.remote = remote;
        this.coordinator = coordinator;
        this.statistics = statistics;
        this.nanoClock = nanoClock;
    }

    /** What becomes of new requests, and of those that are there. */
    private enum Admission {
        /** Everything is served. */
        OPEN,
        /** New requests are refused, the others served. */
        DRAINING,
        /** New requests wait, and nothing is computed. */
        FROZEN,
        /** New requests are refused, and nothing is computed. */
        SHUT
    }

    /** A transition that waits for requests to end, and what to return to if it fails. */
    private record Draining(
            Command.Change change,
            PauseMode mode,
            boolean memoryGoes,
            PhaseTimes times,
            Phase phaseBefore,
            Admission admissionBefore) {}

    /** The state now. Any thread may ask. */
    EngineState state() {
        return state;
    }

    /** True while a transition waits for requests to end. */
    boolean isDraining() {
        return draining != null;
    }

    /** Why a new request cannot be taken, or null if it can. */
    @Nullable String refusal() {
        return switch (admission) {
            case OPEN, FROZEN -> null;
            case DRAINING, SHUT ->
                    switch (phase) {
                        case AWAKE, PAUSING, PAUSED ->
                                "the engine is paused; try again after its resume";
                        case FALLING_ASLEEP, ASLEEP, WAKING ->
                                "the engine is asleep; wake it and try again";
                        case FAILED -> "the engine has failed; restart it";
                        case CLOSED -> "the engine is closing";
                    };
        };
    }

    /** Whether a request that cannot be taken now may be taken some time. */
    boolean mayWake() {
        return phase != Phase.FAILED && phase != Phase.CLOSED;
    }

    void enqueue(Command.Change change) {
        queue.addLast(change);
    }

    /** Begins or completes a transition if it can; true if it did. */
    boolean advance() {
        Draining current = draining;
        if (current != null) {
            if (!drained(current)) {
                return false;
            }
            draining = null;
            settle(current.change(), () -> complete(current));
            return true;
        }
        Command.Change next = queue.poll();
        if (next == null) {
            return false;
        }
        settle(next, () -> begin(next));
        return true;
    }

    /** The engine cannot go on: says so, and refuses everything from now on. */
    void fail() {
        enter(Phase.FAILED, Admission.SHUT);
        Draining current = draining;
        draining = null;
        if (current != null) {
            current.change()
                    .outcome()
                    .completeExceptionally(refused(UNAVAILABLE, "the engine has failed"));
        }
    }

    /** The engine ends: answers every transition that was not made. */
    void close() {
        enter(Phase.CLOSED, Admission.SHUT);
        Draining current = draining;
        draining = null;
        if (current != null) {
            queue.addFirst(current.change());
        }
        queue.forEach(Transitions::refuseClosed);
        queue.clear();
    }

    static void refuseClosed(Command.Change change) {
        change.outcome().completeExceptionally(refused(CONFLICT, "the engine is closed"));
    }

    private interface Attempt {
        /** The report, or null if the transition is not complete yet. */
        @Nullable TransitionReport make();
    }

    private void settle(Command.Change change, Attempt attempt) {
        try {
            TransitionReport report = attempt.make();
            if (report != null) {
                LOG.log(
                        Level.INFO,
                        "transition {0} changed={1} state={2} bytes={3} phases={4}",
                        change.transition(),
                        report.changed(),
                        report.state(),
                        Long.toString(report.bytes()),
                        report.phaseSeconds());
                change.outcome().complete(report);
            }
        } catch (TransitionRefusedException e) {
            change.outcome().completeExceptionally(e);
        } catch (RuntimeException | Error e) {
            change.outcome().completeExceptionally(e);
            throw e;
        }
    }

    private @Nullable TransitionReport begin(Command.Change change) {
        if (phase == Phase.FAILED) {
            throw refused(CONFLICT, "the engine has failed; restart it");
        }
        return switch (change.transition()) {
            case Transition.Sleep sleep -> beginSleep(change, sleep);
            case Transition.ReleaseKvCache _ -> beginRelease(change);
            case Transition.Wake wake -> wake(wake);
            case Transition.Pause pause -> beginPause(change, pause);
            case Transition.Resume _ -> resume();
            case Transition.ResetPrefixCache _ ->
                    report(scheduler.resetPrefixCache() > 0, -1, Set.of(), 0, null);
        };
    }

    private @Nullable TransitionReport beginSleep(Command.Change change, Transition.Sleep sleep) {
        int level = sleep.level();
        if (level < 0 || level > 2) {
            throw refused(INVALID, "sleep level is " + level + ", but must be 0, 1 or 2");
        }
        if (level > 0) {
            requireSleepMode("sleep level " + level);
        }
        if (isAsleepAt(level)) {
            return report(false, level, Set.of(), 0, null);
        }
        drain(change, sleep.mode(), level > 0, true);
        return null;
    }

    private @Nullable TransitionReport beginRelease(Command.Change change) {
        requireSleepMode("release_kv_cache_memory");
        if (asleep.contains(WakeTag.KV_CACHE)) {
            return report(false, -1, Set.of(), 0, null);
        }
        if (phase != Phase.PAUSED && phase != Phase.ASLEEP) {
            throw refused(CONFLICT, "release_kv_cache_memory needs a pause; pause first");
        }
        if (scheduler.liveCount() > 0) {
            throw refused(
                    CONFLICT,
                    "release_kv_cache_memory needs an engine without requests, but "
                            + scheduler.liveCount()
                            + " are there; pause with mode wait or abort first");
        }
        drain(change, PauseMode.WAIT, true, true);
        return null;
    }

    private @Nullable TransitionReport beginPause(Command.Change change, Transition.Pause pause) {
        if (phase == Phase.ASLEEP) {
            return report(false, -1, Set.of(), 0, null);
        }
        Admission wanted = pause.mode() == PauseMode.KEEP ? Admission.FROZEN : Admission.SHUT;
        boolean leavesRequests = pause.mode() == PauseMode.KEEP || scheduler.liveCount() == 0;
        if (phase == Phase.PAUSED && admission == wanted && leavesRequests && !pause.clearCache()) {
            return report(false, -1, Set.of(), 0, null);
        }
        drain(change, pause.mode(), false, pause.mode() != PauseMode.KEEP);
        return null;
    }

    private TransitionReport resume() {
        if (isMemoryAway()) {
            throw refused(CONFLICT, "resume: " + asleep + " are asleep; wake them first");
        }
        boolean changed = phase != Phase.AWAKE;
        asleep.clear();
        enter(Phase.AWAKE, Admission.OPEN);
        return report(changed, -1, Set.of(), 0, null);
    }

    private TransitionReport wake(Transition.Wake wake) {
        @Nullable Set<WakeTag> asked = wake.tags();
        if (asked != null && asked.isEmpty()) {
            throw refused(INVALID, "wake names no tag; name weights, kv_cache or scheduling");
        }
        EnumSet<WakeTag> waking = EnumSet.copyOf(asleep);
        if (asked != null) {
            waking.retainAll(asked);
        }
        if (waking.isEmpty()) {
            boolean resumes =
                    phase == Phase.PAUSED && (asked == null || asked.contains(WakeTag.SCHEDULING));
            return resumes ? resume() : report(false, -1, Set.of(), 0, null);
        }
        PhaseTimes times = new PhaseTimes(nanoClock);
        enter(Phase.WAKING, Admission.SHUT);
        long bytes;
        try {
            bytes = coordinator.wake(memoryOf(waking), times);
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        } catch (RuntimeException e) {
            enter(Phase.ASLEEP, Admission.SHUT);
            throw new TransitionRefusedException(
                    UNAVAILABLE, "wake failed, and was undone: " + e.getMessage(), e);
        }
        asleep.removeAll(waking);
        if (asleep.isEmpty()) {
            enter(Phase.AWAKE, Admission.OPEN);
            times.ended("resume");
        } else {
            enter(Phase.ASLEEP, Admission.SHUT);
        }
        statistics.addTransition("wake", times.totalSeconds());
        return report(true, -1, waking, bytes, times);
    }

    /** Lets requests end, or stops them, as the mode says. */
    private void drain(
            Command.Change change, PauseMode asked, boolean memoryGoes, boolean refuseNew) {
        // What an earlier sleep kept cannot end while its memory is away.
        PauseMode mode = asked == PauseMode.WAIT && isMemoryAway() ? PauseMode.KEEP : asked;
        draining =
                new Draining(change, mode, memoryGoes, new PhaseTimes(nanoClock), phase, admission);
        enter(
                phase == Phase.ASLEEP ? Phase.FALLING_ASLEEP : Phase.PAUSING,
                switch (mode) {
                    case WAIT -> Admission.DRAINING;
                    case ABORT -> Admission.SHUT;
                    case KEEP -> refuseNew ? Admission.SHUT : Admission.FROZEN;
                });
        if (mode == PauseMode.ABORT) {
            scheduler.abortAll();
        }
    }

    /**
     * Blocks that another engine reads, or that a read fills, keep the memory here: until they are
     * read or their lease ends.
     */
    private boolean drained(Draining current) {
        boolean requestsDone = current.mode() != PauseMode.WAIT || scheduler.liveCount() == 0;
        return requestsDone && (!current.memoryGoes() || remote.isQuiet());
    }

    private TransitionReport complete(Draining drained) {
        drained.times().ended("drain");
        return switch (drained.change().transition()) {
            case Transition.Sleep sleep when sleep.level() == 0 -> {
                asleep.add(WakeTag.SCHEDULING);
                enter(Phase.ASLEEP, Admission.SHUT);
                statistics.addTransition("sleep", drained.times().totalSeconds());
                yield report(true, 0, Set.of(WakeTag.SCHEDULING), 0, drained.times());
            }
            case Transition.Sleep sleep ->
                    fallAsleep(
                            drained,
                            "sleep",
                            sleep.level(),
                            EnumSet.of(WakeTag.WEIGHTS, WakeTag.KV_CACHE),
                            sleep.level() == 2
                                    ? EnumSet.allOf(MemoryTag.class)
                                    : EnumSet.of(MemoryTag.KV_CACHE));
            case Transition.ReleaseKvCache _ ->
                    fallAsleep(
                            drained,
                            "release_kv_cache_memory",
                            -1,
                            EnumSet.of(WakeTag.KV_CACHE),
                            EnumSet.of(MemoryTag.KV_CACHE));
            case Transition.Pause pause -> {
                if (pause.clearCache()) {
                    scheduler.resetPrefixCache();
                }
                enter(
                        Phase.PAUSED,
                        pause.mode() == PauseMode.KEEP ? Admission.FROZEN : Admission.SHUT);
                yield report(true, -1, Set.of(), 0, drained.times());
            }
            case Transition.Wake _, Transition.Resume _, Transition.ResetPrefixCache _ ->
                    throw new IllegalStateException("complete: nothing to wait for");
        };
    }

    private TransitionReport fallAsleep(
            Draining drained,
            String operation,
            int level,
            EnumSet<WakeTag> tags,
            Set<MemoryTag> memory) {
        enter(Phase.FALLING_ASLEEP, Admission.SHUT);
        long bytes;
        try {
            bytes = coordinator.fallAsleep(memory, drained.times());
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        } catch (RuntimeException e) {
            enter(drained.phaseBefore(), drained.admissionBefore());
            throw new TransitionRefusedException(
                    UNAVAILABLE, operation + " failed, and was undone: " + e.getMessage(), e);
        }
        asleep.addAll(tags);
        asleep.remove(WakeTag.SCHEDULING);
        enter(Phase.ASLEEP, Admission.SHUT);
        statistics.addTransition(operation, drained.times().totalSeconds());
        return report(true, level, tags, bytes, drained.times());
    }

    /** True if a sleep of this level would change nothing. */
    private boolean isAsleepAt(int level) {
        return phase == Phase.ASLEEP
                && (level == 0
                        || (asleep.contains(WakeTag.WEIGHTS)
                                && asleep.contains(WakeTag.KV_CACHE)
                                && sleepLevel() >= level));
    }

    private boolean isMemoryAway() {
        return asleep.contains(WakeTag.WEIGHTS) || asleep.contains(WakeTag.KV_CACHE);
    }

    private int sleepLevel() {
        if (!isMemoryAway()) {
            return 0;
        }
        return coordinator.isMapped(MemoryTag.WEIGHTS) ? 1 : 2;
    }

    private void requireSleepMode(String operation) {
        if (!sleepMode) {
            throw refused(INVALID, operation + " needs sleep mode; start with --enable-sleep-mode");
        }
    }

    private TransitionRefusedException broken(SleepCoordinator.BrokenException e) {
        fail();
        scheduler.failAll("the engine has failed: " + e.getMessage());
        return new TransitionRefusedException(UNAVAILABLE, String.valueOf(e.getMessage()), e);
    }

    private void enter(Phase next, Admission nextAdmission) {
        phase = next;
        admission = nextAdmission;
        boolean frozen = nextAdmission == Admission.FROZEN || nextAdmission == Admission.SHUT;
        scheduler.freeze(frozen);
        state = new EngineState(next, sleepLevel(), asleep, frozen);
    }

    private TransitionReport report(
            boolean changed, int level, Set<WakeTag> tags, long bytes, @Nullable PhaseTimes times) {
        return new TransitionReport(
                changed,
                state,
                level,
                Set.copyOf(tags),
                bytes,
                times == null ? Map.of() : times.seconds());
    }

    private static Set<MemoryTag> memoryOf(Set<WakeTag> tags) {
        EnumSet<MemoryTag> memory = EnumSet.noneOf(MemoryTag.class);
        for (WakeTag tag : tags) {
            switch (tag) {
                case WEIGHTS -> memory.add(MemoryTag.WEIGHTS);
                case KV_CACHE -> memory.add(MemoryTag.KV_CACHE);
                case SCHEDULING -> {}
            }
        }
        return memory;
    }

    private static TransitionRefusedException refused(
            TransitionRefusedException.Reason reason, String message) {
        return new TransitionRefusedException(reason, message);
    }
}
