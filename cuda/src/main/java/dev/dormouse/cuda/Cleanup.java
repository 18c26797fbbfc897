package dev.dormouse.cuda;

import org.jspecify.annotations.Nullable;

/** Takes every step of a cleanup, whatever fails, and reports the failures together at the end. */
public final class Cleanup {
    private @Nullable RuntimeException first;

    /** Nothing has failed yet. */
    public Cleanup() {}

    /** Takes a step; its failure is kept. */
    public void run(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException e) {
            if (first == null) {
                first = e;
            } else {
                first.addSuppressed(e);
            }
        }
    }

    /** Throws the first failure, if there was one, with the later ones suppressed in it. */
    public void rethrow() {
        if (first != null) {
            throw first;
        }
    }
}
