package dev.dormouse.nixl;

import java.io.File;
import java.util.Objects;

/** File descriptors of this process. */
final class Descriptors {
    private Descriptors() {}

    static long open() {
        return Objects.requireNonNull(new File("/proc/self/fd").list()).length;
    }
}
