package dev.dormouse.engine.core;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Requests that arrived while the engine could not take any, and wait for it to wake. The engine's
 * limit of live requests bounds it.
 */
final class Lobby {
    private final Deque<Command.Submit> held = new ArrayDeque<>();

    void enter(Command.Submit submit) {
        held.addLast(submit);
    }

    /** Everybody, in the order of their arrival; nobody is here any more. */
    List<Command.Submit> leave() {
        List<Command.Submit> all = List.copyOf(held);
        held.clear();
        return all;
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
