package dev.dormouse.memory;

import org.jspecify.annotations.Nullable;

/** Runs all steps of a cleanup, whatever fails, and tells of the failures at its end. */
final class Failures {
    private @Nullable RuntimeException first;

    void attempt(Runnable step) {
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

    void rethrow() {
        if (first != null) {
            throw first;
        }
    }
}
