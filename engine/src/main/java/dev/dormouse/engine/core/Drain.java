package dev.dormouse.engine.core;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.core.Lifecycle.Admission;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A transition that waits for requests or readers to end.
 *
 * @param mode what becomes of requests
 * @param memoryGoes whether blocks that other engines have to do with are waited for, too
 * @param phaseBefore what to return to if it fails
 * @param admissionBefore likewise
 */
record Drain(
        Command.Change change,
        PauseMode mode,
        boolean memoryGoes,
        PhaseTimes times,
        Phase phaseBefore,
        Admission admissionBefore) {
    /**
     * For requests and readers to end. Longer than any lease and any answer should take: what is
     * still there then may never end.
     */
    static final Duration LIMIT = Duration.ofMinutes(10);

    /** Requests that a message names. */
    private static final int MAX_NAMED = 8;

    /**
     * Blocks that another engine reads, or that a read fills, keep the memory here: until they are
     * read, their lease ends, or the drain is given up.
     */
    boolean isDone(Scheduler scheduler, RemoteKv remote) {
        boolean requestsDone = mode != PauseMode.WAIT || scheduler.liveCount() == 0;
        return requestsDone && (!memoryGoes || remote.isQuiet());
    }

    boolean isOverdue() {
        return times.totalSeconds() >= LIMIT.toSeconds();
    }

    /** Why it is given up, for the caller. */
    String unfinished(Scheduler scheduler, RemoteKv remote) {
        List<String> reasons = new ArrayList<>();
        if (mode == PauseMode.WAIT && scheduler.liveCount() > 0) {
            reasons.add("requests " + some(scheduler.liveIds()) + " have not ended");
        }
        if (memoryGoes && !remote.isQuiet()) {
            reasons.add("transfers of " + some(remote.pendingIds()) + " have not ended");
        }
        return "given up after %d s: %s; the engine goes on as before; try again, or with mode abort"
                .formatted(LIMIT.toSeconds(), String.join(", and ", reasons));
    }

    private static String some(List<String> ids) {
        int more = ids.size() - MAX_NAMED;
        return ids.subList(0, Math.min(ids.size(), MAX_NAMED))
                + (more > 0 ? " and " + more + " more" : "");
    }
}
