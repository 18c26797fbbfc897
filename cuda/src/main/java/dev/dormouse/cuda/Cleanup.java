package dev.dormouse.cuda;

import org.jspecify.annotations.Nullable;

/** Takes every step of a cleanup, whatever fails, and reports the failures together at the end. */
final class Cleanup {
    private @Nullable RuntimeException first;

    void run(Runnable step) {
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
