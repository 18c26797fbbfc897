package dev.dormouse.connector;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The claims of one conversation. Those of requests that come while it is under way join it: they
 * are made behind the others, once, so that no stream of requests keeps the first ones waiting.
 * Shared by the rank's thread and the conversation's.
 */
final class OpenClaims {
    /** Claims that one conversation bears. */
    static final int MAX = 256;

    /** The first claims, and those that joined until they were made. */
    private static final int ROUNDS = 2;

    private final Set<HoldQuestion> waiting;
    private int rounds;
    private int room;

    /** Begins with these, which are no more than {@link #MAX}. */
    OpenClaims(List<HoldQuestion> first) {
        this.waiting = new LinkedHashSet<>(first);
        this.room = MAX - waiting.size();
    }

    /** True if the claim will be made; false if it is too late or there are too many. */
    synchronized boolean join(HoldQuestion claim) {
        if (rounds == ROUNDS || room == 0) {
            return false;
        }
        if (waiting.add(claim)) {
            room--;
        }
        return true;
    }

    /** The claims to be made next; if there are none, there will be no more. */
    synchronized List<HoldQuestion> next() {
        List<HoldQuestion> taken = List.copyOf(waiting);
        waiting.clear();
        rounds = taken.isEmpty() ? ROUNDS : Math.min(ROUNDS, rounds + 1);
        return taken;
    }
}
