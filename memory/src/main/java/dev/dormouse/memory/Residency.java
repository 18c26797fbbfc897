package dev.dormouse.memory;

import java.util.Set;

/** Whether the memory of a tag is there. */
public enum Residency {
    /**
     * The addresses are reserved and may be touched by native code without harm, but no page
     * belongs to them: reads give zeros, and what is written is lost. Java code gets no segment.
     */
    ASLEEP,
    /** Every page is there. */
    AWAKE,
    /**
     * A mapping call failed, and so did the call that should have undone it. Nobody knows what lies
     * at the addresses now, so nothing is mapped or unmapped there any more. Only a new process
     * helps.
     */
    LOST,
    /** Given back, addresses included. */
    CLOSED;

    /** The table of transitions; everything else is a programming error. */
    boolean canBecome(Residency next) {
        Set<Residency> allowed =
                switch (this) {
                    case ASLEEP -> Set.of(AWAKE, LOST, CLOSED);
                    case AWAKE -> Set.of(ASLEEP, LOST, CLOSED);
                    case LOST -> Set.of(CLOSED);
                    case CLOSED -> Set.of();
                };
        return allowed.contains(next);
    }
}
