package dev.dormouse.engine.core;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import org.jspecify.annotations.Nullable;

/**
 * Requests that arrived while the engine could not take any, and wait for it to wake. Bounded;
 * without room from the start if the operator did not choose to hold requests.
 */
final class Lobby {
    private final int room;
    private final Deque<Command.Submit> held = new ArrayDeque<>();

    Lobby(int room) {
        this.room = room;
    }

    /** Takes a request in; false if there is no room. */
    boolean enter(Command.Submit submit) {
        return held.size() < room && held.add(submit);
    }

    /** The request that waits longest, or null; it is not here any more. */
    Command.@Nullable Submit leave() {
        return held.poll();
    }

    /** Removes a request by its id; null if it is not here. */
    Command.@Nullable Submit remove(String requestId) {
        for (Iterator<Command.Submit> each = held.iterator(); each.hasNext(); ) {
            Command.Submit submit = each.next();
            if (submit.request().id().equals(requestId)) {
                each.remove();
                return submit;
            }
        }
        return null;
    }

    int size() {
        return held.size();
    }
}
