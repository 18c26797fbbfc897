package dev.dormouse.engine.core;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.core.Lifecycle.Admission;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Begins and ends {@link Drain}s: what becomes of requests, of new ones, and of what is held for
 * other engines. There is one at a time. Used by the engine's thread.
 */
final class Draining {
    private final Lifecycle life;
    private final Scheduler scheduler;
    private final RemoteKv remote;
    private final SleepCoordinator coordinator;
    private final LongSupplier nanoClock;
    private @Nullable Drain current;

    Draining(
            Lifecycle life,
            Scheduler scheduler,
            RemoteKv remote,
            SleepCoordinator coordinator,
            LongSupplier nanoClock) {
        this.life = life;
        this.scheduler = scheduler;
        this.remote = remote;
        this.coordinator = coordinator;
        this.nanoClock = nanoClock;
    }

    /** The one under way, or null. */
    @Nullable Drain current() {
        return current;
    }

    /**
     * Begins one.
     *
     * @throws SleepCoordinator.BrokenException if that failed and could not be undone; any other
     *     exception means that it was undone, but requests that the mode ended stay ended
     */
    void begin(Command.Change change, PauseMode asked, boolean memoryGoes, boolean refuseNew) {
        // Nothing computes while the engine sleeps, so what an earlier sleep kept cannot end.
        PauseMode mode =
                asked == PauseMode.WAIT && life.phase() == Phase.ASLEEP ? PauseMode.KEEP : asked;
        Drain begun =
                new Drain(
                        change,
                        mode,
                        memoryGoes,
                        new PhaseTimes(nanoClock),
                        life.phase(),
                        life.admission());
        current = begun;
        life.enter(
                life.phase() == Phase.ASLEEP ? Phase.FALLING_ASLEEP : Phase.PAUSING,
                switch (mode) {
                    case WAIT -> Admission.DRAINING;
                    case ABORT -> Admission.SHUT;
                    case KEEP -> refuseNew ? Admission.SHUT : Admission.FROZEN;
                });
        if (mode == PauseMode.ABORT) {
            scheduler.abortAll();
        }
        try {
            coordinator.drain(memoryGoes);
            if (memoryGoes && mode != PauseMode.WAIT && remote.heldCount() > 0) {
                coordinator.revoke();
            }
        } catch (RuntimeException e) {
            goBack(begun, e);
            throw e;
        }
    }

    /** It has done what it was for. */
    void end() {
        current = null;
        coordinator.drain(false);
    }

    /**
     * To what was before it; requests that its mode ended stay ended.
     *
     * @param why it is given up
     * @throws SleepCoordinator.BrokenException if that cannot be
     */
    void goBack(Drain drain, RuntimeException why) {
        try {
            end();
            coordinator.carryOn();
        } catch (RuntimeException e) {
            e.addSuppressed(why);
            throw new SleepCoordinator.BrokenException(
                    "the drain ended, and could not be undone: "
                            + e.getMessage()
                            + "; restart the engine",
                    e);
        }
        life.enter(drain.phaseBefore(), drain.admissionBefore());
    }

    /** The engine ends, or has failed: forgets the one under way, whose call is to be answered. */
    @Nullable Drain drop() {
        Drain dropped = current;
        current = null;
        return dropped;
    }
}
