package dev.dormouse.transport.nixl;

import java.io.File;
import java.util.Objects;

/**
 * What a process holds of the kernel's.
 *
 * @param descriptors open file descriptors
 * @param threads threads, those of native libraries too
 */
record ProcessCounts(int descriptors, int threads) {
    static ProcessCounts ofThisProcess() {
        return new ProcessCounts(entries("/proc/self/fd"), entries("/proc/self/task"));
    }

    /** As {@link #toString} of another process wrote it. */
    static ProcessCounts parse(String text) {
        String[] numbers = text.split(" ", 2);
        return new ProcessCounts(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1]));
    }

    @Override
    public String toString() {
        return descriptors + " " + threads;
    }

    private static int entries(String directory) {
        return Objects.requireNonNull(new File(directory).list()).length;
    }
}
