package dev.dormouse.cli;

import java.io.IOException;

/**
 * Ends this process when whoever started it is gone, even killed: their end of the standard input
 * closes then. For the demonstration's processes, none of which may outlive it.
 */
public final class ExitWithParent {
    private ExitWithParent() {}

    /** Starts to watch. */
    public static void watch() {
        Thread.ofPlatform().daemon().name("dormouse-parent-watch").start(ExitWithParent::awaitEnd);
    }

    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
                // What the parent writes is of no interest.
            }
        } catch (IOException e) {
            // A broken pipe says the same as its end.
        }
        System.exit(0);
    }
}
