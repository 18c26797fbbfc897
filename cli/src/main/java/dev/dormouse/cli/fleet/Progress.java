package dev.dormouse.cli.fleet;

import java.io.PrintStream;
import java.util.Locale;

/** Says on the error stream what a command does, with the seconds since its start. */
public final class Progress {
    private final PrintStream out;
    private final long start = System.nanoTime();

    public Progress(PrintStream out) {
        this.out = out;
    }

    public void say(String what) {
        out.printf(Locale.ROOT, "[%5.1f s] %s%n", seconds(), what);
    }

    public double seconds() {
        return (System.nanoTime() - start) / 1e9;
    }
}
