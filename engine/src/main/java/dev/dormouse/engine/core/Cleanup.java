package dev.dormouse.engine.core;

import org.jspecify.annotations.Nullable;

/** Runs every step of an end, also after one that failed. */
final class Cleanup {
    private @Nullable RuntimeException failure;

    Cleanup() {}

    /** After a failure, which collects those of the steps. */
    Cleanup(RuntimeException failure) {
        this.failure = failure;
    }

    void run(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException e) {
            if (failure == null) {
                failure = e;
            } else {
                failure.addSuppressed(e);
            }
        }
    }

    /** Throws the first failure, with the others suppressed. */
    void finish() {
        if (failure != null) {
            throw failure;
        }
    }
}
