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

    private enum Progress {
        NEW,
        TAKEN,
        DONE
    }

    private final Map<String, Progress> progress = new LinkedHashMap<>();
    private final List<Revocation> fresh = new ArrayList<>();

    /** Takes a peer's demand, which may have been made before; true once the ranks obeyed it. */
    synchronized boolean isDone(Revocation revocation) {
        Progress known = progress.get(revocation.id());
        if (known == null && makeRoom()) {
            progress.put(revocation.id(), Progress.NEW);
            fresh.add(revocation);
        }
        return known == Progress.DONE;
    }

    /** The demands that the ranks do not know yet. */
    synchronized List<Revocation> take() {
        List<Revocation> taken = List.copyOf(fresh);
        taken.forEach(revocation -> progress.put(revocation.id(), Progress.TAKEN));
        fresh.clear();
        return taken;
    }

    /** All ranks have obeyed. */
    synchronized void done(Set<String> ids) {
        ids.forEach(id -> progress.computeIfPresent(id, (_, _) -> Progress.DONE));
    }

    /** Forgets what was obeyed first; false if nothing was. */
    private boolean makeRoom() {
        if (progress.size() < MAX_REMEMBERED) {
            return true;
        }
        for (Iterator<Progress> each = progress.values().iterator(); each.hasNext(); ) {
            if (each.next() == Progress.DONE) {
                each.remove();
                return true;
            }
        }
        return false;
    }
}
