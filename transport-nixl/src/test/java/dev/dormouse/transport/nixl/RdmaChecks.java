package dev.dormouse.transport.nixl;

/** Prints what was checked in the guest, a line each, and counts it. */
final class RdmaChecks {
    private final long startNanos = System.nanoTime();
    private int passed;
    private int failed;

    /** A fact that must hold, with what was seen. */
    void check(String fact, boolean holds, Object seen) {
        if (holds) {
            passed++;
        } else {
            failed++;
        }
        print((holds ? "ok      " : "NOT OK  ") + fact + " [" + seen + "]");
    }

    /** Something to know. */
    void note(String text) {
        print("        " + text);
    }

    private void print(String line) {
        System.out.printf("%4d s  %s%n", (System.nanoTime() - startNanos) / 1_000_000_000, line);
        System.out.flush();
    }

    int failed() {
        return failed;
    }

    /** Prints the sum; true if nothing failed. */
    boolean end() {
        System.out.println(passed + " passed, " + failed + " failed");
        System.out.flush();
        return failed == 0;
    }
}
