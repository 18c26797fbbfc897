package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What peers demand, on its way from the side channel to the ranks, and how far the ranks are with
 * it. Shared by the side channel's threads and the engine's.
 *
 * @param <D> the kind of demand
 */
final class DemandInbox<D extends Demand> {
    /** Of peers that shut down at once; who demands more waits. */
    static final int MAX_REMEMBERED = 1_024;

    /** Whether all ranks have obeyed, in the order in which peers demanded. */
    private final Map<String, Boolean> obeyed = new LinkedHashMap<>();

    private final List<D> fresh = new ArrayList<>();

    /** Takes a peer's demand, which may have been made before; true once the ranks obeyed it. */
    synchronized boolean isDone(D demand) {
        Boolean known = obeyed.get(demand.id());
        if (known == null && makeRoom()) {
            obeyed.put(demand.id(), false);
            fresh.add(demand);
        }
        return known != null && known;
    }

    /** The demands that the ranks do not know yet. */
    synchronized List<D> take() {
        List<D> taken = List.copyOf(fresh);
        fresh.clear();
        return taken;
    }

    /** All ranks have obeyed. */
    synchronized void done(Set<String> ids) {
        ids.forEach(id -> obeyed.computeIfPresent(id, (_, _) -> true));
    }

    /** Forgets what was obeyed first; false if nothing was. */
    private boolean makeRoom() {
        if (obeyed.size() < MAX_REMEMBERED) {
            return true;
        }
        for (Iterator<Boolean> each = obeyed.values().iterator(); each.hasNext(); ) {
            if (each.next()) {
                each.remove();
                return true;
            }
        }
        return false;
    }
}
