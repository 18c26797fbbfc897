package dev.dormouse.engine;

import java.util.Set;

/**
 * A snapshot of what an engine is doing.
 *
 * @param phase where in its life it is
 * @param sleepLevel 1 if some memory is away but the weights are not, 2 if the weights are away,
 *     otherwise 0
 * @param asleep tags that a wake can bring back
 * @param paused true if nothing is scheduled
 */
public record EngineState(Phase phase, int sleepLevel, Set<WakeTag> asleep, boolean paused) {
    /** Where an engine is in its life. */
    public enum Phase {
        /** Serving, or paused with all its memory. */
        AWAKE,
        /** On the way to a pause. */
        PAUSING,
        /** Paused with all its memory; {@code sleepLevel} 0. */
        PAUSED,
        /** Giving memory back. */
        FALLING_ASLEEP,
        /** Some or all tags are away, or scheduling is, by a sleep of level 0. */
        ASLEEP,
        /** Taking memory back. */
        WAKING,
        /** A transition failed half way and could not be undone; only closing helps. */
        FAILED,
        /** Closed. */
        CLOSED
    }

    /** Copies the tags. */
    public EngineState {
        asleep = Set.copyOf(asleep);
    }

    /** True until every tag is back. */
    public boolean isSleeping() {
        return phase == Phase.FALLING_ASLEEP || phase == Phase.ASLEEP || phase == Phase.WAKING;
    }
}
