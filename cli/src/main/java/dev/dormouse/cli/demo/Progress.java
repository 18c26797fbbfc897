package dev.dormouse.cli.demo;

import java.io.PrintStream;
import java.util.Locale;

/** Says on the error stream what the demonstration does, with the seconds since its start. */
final class Progress {
    private final PrintStream out;
    private final long start = System.nanoTime();

    Progress(PrintStream out) {
        this.out = out;
    }

    void say(String what) {
        out.printf(Locale.ROOT, "[%5.1f s] %s%n", seconds(), what);
    }

    double seconds() {
        return (System.nanoTime() - start) / 1e9;
    }
}
