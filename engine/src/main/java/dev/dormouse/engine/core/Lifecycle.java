package dev.dormouse.engine.core;

import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.memory.MemoryTag;
import java.util.Collection;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Where the engine is in its life, and what that means for requests. Written by the engine's
 * thread; any thread may read {@link #state} and {@link #refusal}.
 */
final class Lifecycle {
    private final Scheduler scheduler;
    private final SleepCoordinator coordinator;
    private final boolean holdsRequests;
    private final EnumSet<WakeTag> asleep = EnumSet.noneOf(WakeTag.class);
    private Phase phase = Phase.AWAKE;
    private Admission admission = Admission.OPEN;
    private volatile EngineState state = new EngineState(Phase.AWAKE, 0, Set.of(), false);
    private volatile GenerationEvent.@Nullable Failed refusal;

    /**
     * Awake.
     *
     * @param holdsRequests whether requests that cannot be taken now wait for a wake
     */
    Lifecycle(Scheduler scheduler, SleepCoordinator coordinator, boolean holdsRequests) {
        this.holdsRequests = holdsRequests;
        this.scheduler = scheduler;
        this.coordinator = coordinator;
    }

    /** What becomes of new requests, and of those that are there. */
    enum Admission {
        /** Everything is served. */
        OPEN,
        /** New requests are refused, the others served. */
        DRAINING,
        /** New requests wait, and nothing is computed. */
        FROZEN,
        /** New requests are refused, and nothing is computed. */
        SHUT
    }

    EngineState state() {
        return state;
    }

    /** Why a new request cannot be taken now, or null if it can. */
    GenerationEvent.@Nullable Failed refusal() {
        return refusal;
    }

    /** Whether a new request that cannot be taken now waits until it can. Any thread may ask. */
    boolean holdsRequests() {
        Phase now = state.phase();
        return holdsRequests && now != Phase.FAILED && now != Phase.CLOSED;
    }

    Phase phase() {
        return phase;
    }

    Admission admission() {
        return admission;
    }

    /** What a wake can bring back. */
    EnumSet<WakeTag> asleep() {
        return EnumSet.copyOf(asleep);
    }

    boolean isAsleep(WakeTag tag) {
        return asleep.contains(tag);
    }

    boolean isMemoryAway() {
        return isAsleep(WakeTag.WEIGHTS) || isAsleep(WakeTag.KV_CACHE);
    }

    /** True if a sleep of this level would change nothing. */
    boolean isAsleepAt(int level) {
        return phase == Phase.ASLEEP
                && (level == 0
                        || (isAsleep(WakeTag.WEIGHTS)
                                && isAsleep(WakeTag.KV_CACHE)
                                && sleepLevel() >= level));
    }

    /** The tags are away; scheduling comes back with the last of them. */
    void fellAsleep(Collection<WakeTag> tags) {
        asleep.addAll(tags);
        if (isMemoryAway()) {
            asleep.remove(WakeTag.SCHEDULING);
        }
        enter(Phase.ASLEEP, Admission.SHUT);
    }

    /** The tags are back; serves again if they were the last. */
    void woke(Collection<WakeTag> tags) {
        asleep.removeAll(tags);
        if (asleep.isEmpty()) {
            enter(Phase.AWAKE, Admission.OPEN);
        } else {
            enter(Phase.ASLEEP, Admission.SHUT);
        }
    }

    void enter(Phase nextPhase, Admission nextAdmission) {
        phase = nextPhase;
        admission = nextAdmission;
        boolean frozen = nextAdmission == Admission.FROZEN || nextAdmission == Admission.SHUT;
        scheduler.freeze(frozen);
        refusal = refusalIn(nextPhase, nextAdmission);
        state = new EngineState(nextPhase, sleepLevel(), asleep, frozen);
    }

    /** The memory behind the tags. */
    static Set<MemoryTag> memoryOf(Set<WakeTag> tags) {
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

    private int sleepLevel() {
        if (!isMemoryAway()) {
            return 0;
        }
        return coordinator.isMapped(MemoryTag.WEIGHTS) ? 1 : 2;
    }

    private static GenerationEvent.@Nullable Failed refusalIn(Phase phase, Admission admission) {
        return switch (admission) {
            case OPEN, FROZEN -> null;
            case DRAINING, SHUT ->
                    switch (phase) {
                        case AWAKE, PAUSING, PAUSED ->
                                new GenerationEvent.Failed(
                                        FailureKind.PAUSED,
                                        "the engine is paused; try again after its resume");
                        case FALLING_ASLEEP, ASLEEP, WAKING ->
                                unavailable("the engine is asleep; wake it and try again");
                        case FAILED -> unavailable("the engine has failed; restart it");
                        case CLOSED -> unavailable("the engine is closed");
                    };
        };
    }

    /** A refusal until later. */
    static GenerationEvent.Failed unavailable(String message) {
        return new GenerationEvent.Failed(FailureKind.UNAVAILABLE, message);
    }
}
