package dev.dormouse.cli.doctor;

import java.util.Locale;

/** Byte counts for people. */
final class Bytes {
    static final long GIB = 1L << 30;

    private static final long MIB = 1L << 20;
    private static final long KIB = 1L << 10;

    private Bytes() {}

    static String text(long bytes) {
        if (bytes >= GIB) {
            return String.format(Locale.ROOT, "%.1f GiB", (double) bytes / GIB);
        }
        if (bytes >= MIB) {
            return bytes / MIB + " MiB";
        }
        return bytes / KIB + " KiB";
    }
}
