package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What peers have revoked, on its way from the side channel to the ranks, and how far the ranks are
 * with it. Shared by the side channel's threads and the engine's.
 */
final class RevocationInbox {
    /** Peers that shut down at once; who demands more waits. */
    static final int MAX_REMEMBERED = 1_024;

    /** Whether all ranks have obeyed, in the order in which peers demanded. */
    private final Map<String, Boolean> obeyed = new LinkedHashMap<>();

    private final List<Revocation> fresh = new ArrayList<>();

    /** Takes a peer's demand, which may have been made before; true once the ranks obeyed it. */
    synchronized boolean isDone(Revocation revocation) {
        Boolean known = obeyed.get(revocation.id());
        if (known == null && makeRoom()) {
            obeyed.put(revocation.id(), false);
            fresh.add(revocation);
        }
        return known != null && known;
    }

    /** The demands that the ranks do not know yet. */
    synchronized List<Revocation> take() {
        List<Revocation> taken = List.copyOf(fresh);
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
