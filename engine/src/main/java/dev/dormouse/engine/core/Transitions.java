package dev.dormouse.engine.core;

import static dev.dormouse.engine.TransitionRefusedException.Reason.CONFLICT;
import static dev.dormouse.engine.TransitionRefusedException.Reason.INVALID;
import static dev.dormouse.engine.TransitionRefusedException.Reason.UNAVAILABLE;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.engine.core.Lifecycle.Admission;
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
 * Makes the engine's transitions, one after the other in the order of the calls.
 *
 * <p>A transition that lets requests end first is begun in one step of the engine and completed in
 * a later one; the engine goes on stepping in between. All others take one step.
 */
final class Transitions {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    private final boolean sleepMode;
    private final Lifecycle life;
    private final Scheduler scheduler;
    private final RemoteKv remote;
    private final SleepCoordinator coordinator;
    private final StatisticsBoard statistics;
    private final LongSupplier nanoClock;
    private final Deque<Command.Change> queue = new ArrayDeque<>();
    private final Draining draining;

    /** A drain was cancelled for the resume that comes next. */
    private boolean cancelled;

    Transitions(
            boolean sleepMode,
            Lifecycle life,
            Scheduler scheduler,
            RemoteKv remote,
            SleepCoordinator coordinator,
            StatisticsBoard statistics,
            LongSupplier nanoClock) {
        this.sleepMode = sleepMode;
        this.life = life;
        this.scheduler = scheduler;
        this.remote = remote;
        this.coordinator = coordinator;
        this.statistics = statistics;
        this.nanoClock = nanoClock;
        this.draining = new Draining(life, scheduler, remote, coordinator, nanoClock);
    }

    /** True while a transition waits for requests to end. */
    boolean isDraining() {
        return draining.current() != null;
    }

    void enqueue(Command.Change change) {
        queue.addLast(change);
    }

    /** Begins or completes a transition if it can; true if it did. */
    boolean advance() {
        Drain current = draining.current();
        if (current != null) {
            if (current.isDone(scheduler, remote)) {
                settle(
                        current.change(),
                        () -> {
                            draining.end();
                            return complete(current);
                        });
                return true;
            }
            if (queue.stream().anyMatch(c -> c.transition() instanceof Transition.Resume)) {
                cancelled = true;
                giveUp(current, refused(CONFLICT, "cancelled by a resume"));
                return true;
            }
            if (current.isOverdue()) {
                giveUp(current, refused(UNAVAILABLE, current.unfinished(scheduler, remote)));
                return true;
            }
            return false;
        }
        Command.Change next = queue.poll();
        if (next == null) {
            return false;
        }
        settle(next, () -> begin(next));
        return true;
    }

    /** Answers a transition that was begun, and goes back to what was before its drain. */
    private void giveUp(Drain current, TransitionRefusedException why) {
        LOG.log(
                Level.WARNING,
                "transition {0} given up: {1}",
                current.change().transition(),
                why.getMessage());
        settle(
                current.change(),
                () -> {
                    goBack(current, why);
                    throw why;
                });
    }

    private void goBack(Drain current, RuntimeException why) {
        try {
            draining.goBack(current, why);
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        }
        statistics.refresh();
    }

    /**
     * The engine cannot go on: says so, refuses everything from now on, and is not found by other
     * engines any more.
     */
    void fail() {
        life.enter(Phase.FAILED, Admission.SHUT);
        coordinator.withdraw();
        Drain current = draining.drop();
        if (current != null) {
            current.change()
                    .outcome()
                    .completeExceptionally(refused(UNAVAILABLE, "the engine has failed"));
        }
    }

    /** The engine ends: answers every transition that was not made. */
    void close() {
        life.enter(Phase.CLOSED, Admission.SHUT);
        Drain current = draining.drop();
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
                statistics.refresh();
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
        if (life.phase() == Phase.FAILED) {
            throw refused(CONFLICT, "the engine has failed; restart it");
        }
        return switch (change.transition()) {
            case Transition.Sleep sleep -> beginSleep(change, sleep);
            case Transition.ReleaseKvCache _ -> beginRelease(change);
            case Transition.Wake wake -> wake(wake.tags());
            case Transition.Pause pause -> beginPause(change, pause);
            case Transition.Resume _ -> resume();
            case Transition.WindDown _ -> beginWindDown(change);
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
        if (life.isAsleepAt(level)) {
            return unchanged(level);
        }
        drain(change, sleep.mode(), level > 0, true);
        return null;
    }

    private @Nullable TransitionReport beginRelease(Command.Change change) {
        requireSleepMode("release_kv_cache_memory");
        if (life.isAsleep(WakeTag.KV_CACHE)) {
            return unchanged(-1);
        }
        if (life.phase() != Phase.PAUSED && life.phase() != Phase.ASLEEP) {
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
        if (life.phase() == Phase.ASLEEP) {
            return unchanged(-1);
        }
        boolean leavesRequests = pause.mode() == PauseMode.KEEP || scheduler.liveCount() == 0;
        if (life.phase() == Phase.PAUSED
                && life.admission() == whilePaused(pause.mode())
                && leavesRequests
                && !(pause.clearCache() && scheduler.hasCachedPrefixes())) {
            return unchanged(-1);
        }
        drain(change, pause.mode(), false, pause.mode() != PauseMode.KEEP);
        return null;
    }

    /** What an earlier pause froze is served to its end; asleep nothing can be. */
    private @Nullable TransitionReport beginWindDown(Command.Change change) {
        drain(change, PauseMode.WAIT, true, true);
        return null;
    }

    private TransitionReport resume() {
        boolean changed = life.phase() != Phase.AWAKE || cancelled;
        cancelled = false;
        if (life.isMemoryAway()) {
            throw refused(CONFLICT, "resume: " + life.asleep() + " are asleep; wake them first");
        }
        life.woke(life.asleep());
        return report(changed, -1, Set.of(), 0, null);
    }

    private TransitionReport wake(@Nullable Set<WakeTag> asked) {
        if (asked != null && asked.isEmpty()) {
            throw refused(INVALID, "wake names no tag; name weights, kv_cache or scheduling");
        }
        EnumSet<WakeTag> waking = life.asleep();
        if (asked != null) {
            waking.retainAll(asked);
        }
        if (waking.isEmpty()) {
            boolean resumes =
                    life.phase() == Phase.PAUSED
                            && (asked == null || asked.contains(WakeTag.SCHEDULING));
            return resumes ? resume() : unchanged(-1);
        }
        PhaseTimes times = new PhaseTimes(nanoClock);
        life.enter(Phase.WAKING, Admission.SHUT);
        long bytes;
        try {
            bytes = coordinator.wake(Lifecycle.memoryOf(waking), times);
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        } catch (RuntimeException e) {
            life.enter(Phase.ASLEEP, Admission.SHUT);
            throw new TransitionRefusedException(
                    UNAVAILABLE, "wake failed, and was undone: " + e.getMessage(), e);
        }
        life.woke(waking);
        statistics.addTransition("wake", times.totalSeconds());
        return report(true, -1, waking, bytes, times);
    }

    /** Lets requests end, or stops them, as the mode says. */
    private void drain(
            Command.Change change, PauseMode mode, boolean memoryGoes, boolean refuseNew) {
        try {
            draining.begin(change, mode, memoryGoes, refuseNew);
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        } catch (RuntimeException e) {
            throw new TransitionRefusedException(
                    UNAVAILABLE, "the drain failed, and was undone: " + e.getMessage(), e);
        }
    }

    private TransitionReport complete(Drain drained) {
        drained.times().ended("drain");
        return switch (drained.change().transition()) {
            case Transition.Sleep sleep when sleep.level() == 0 -> {
                life.fellAsleep(Set.of(WakeTag.SCHEDULING));
                statistics.addTransition("sleep", drained.times().totalSeconds());
                yield report(true, 0, Set.of(WakeTag.SCHEDULING), 0, drained.times());
            }
            case Transition.Sleep sleep ->
                    fallAsleep(
                            drained,
                            "sleep",
                            sleep.level(),
                            EnumSet.of(WakeTag.WEIGHTS, WakeTag.KV_CACHE),
                            // At level 1 the weights stay where they are, in host memory.
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
                life.enter(Phase.PAUSED, whilePaused(pause.mode()));
                yield report(true, -1, Set.of(), 0, drained.times());
            }
            case Transition.WindDown _ -> {
                boolean asleep = drained.phaseBefore() == Phase.ASLEEP;
                life.enter(asleep ? Phase.ASLEEP : Phase.PAUSED, Admission.SHUT);
                yield report(!asleep, -1, Set.of(), 0, drained.times());
            }
            case Transition.Wake _, Transition.Resume _, Transition.ResetPrefixCache _ ->
                    throw new IllegalStateException("complete: nothing to wait for");
        };
    }

    private TransitionReport fallAsleep(
            Drain drained,
            String operation,
            int level,
            EnumSet<WakeTag> tags,
            Set<MemoryTag> memory) {
        life.enter(Phase.FALLING_ASLEEP, Admission.SHUT);
        long bytes;
        try {
            bytes = coordinator.fallAsleep(memory, drained.times());
        } catch (SleepCoordinator.BrokenException e) {
            throw broken(e);
        } catch (RuntimeException e) {
            life.enter(drained.phaseBefore(), drained.admissionBefore());
            throw new TransitionRefusedException(
                    UNAVAILABLE, operation + " failed, and was undone: " + e.getMessage(), e);
        }
        life.fellAsleep(tags);
        statistics.addTransition(operation, drained.times().totalSeconds());
        return report(true, level, tags, bytes, drained.times());
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

    private TransitionReport unchanged(int level) {
        return report(false, level, Set.of(), 0, null);
    }

    private TransitionReport report(
            boolean changed, int level, Set<WakeTag> tags, long bytes, @Nullable PhaseTimes times) {
        return new TransitionReport(
                changed,
                life.state(),
                level,
                Set.copyOf(tags),
                bytes,
                times == null ? Map.of() : times.seconds());
    }

    private static Admission whilePaused(PauseMode mode) {
        return mode == PauseMode.KEEP ? Admission.FROZEN : Admission.SHUT;
    }

    private static TransitionRefusedException refused(
            TransitionRefusedException.Reason reason, String message) {
        return new TransitionRefusedException(reason, message);
    }
}
