package dev.dormouse.engine.core;

import org.jspecify.annotations.Nullable;

/** Runs every step, also after one that failed. */
final class Cleanup {
    private @Nullable Throwable failure;

    Cleanup() {}

    /** After a failure, which collects those of the steps. */
    Cleanup(Throwable failure) {
        this.failure = failure;
    }

    void run(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error e) {
            if (failure == null) {
                failure = e;
            } else if (!failure.equals(e)) {
                failure.addSuppressed(e);
            }
        }
    }

    /** Throws the first failure, with the others suppressed. */
    void finish() {
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure instanceof RuntimeException exception) {
            throw exception;
        }
    }
}
