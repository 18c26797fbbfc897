package dev.dormouse.memory;

import java.util.OptionalLong;

/** The {@code name: number kB} lines that the kernel prints in {@code /proc}. */
final class KernelText {
    private static final long BYTES_PER_KILOBYTE = 1024;

    private KernelText() {}

    /** The bytes of the first line of that name, if there is one and it is well-formed. */
    static OptionalLong kilobytes(String text, String name) {
        return text.lines()
                .filter(line -> line.startsWith(name + ":") && line.endsWith(" kB"))
                .map(line -> line.substring(name.length() + 1, line.length() - " kB".length()))
                .map(String::strip)
                .filter(digits -> digits.matches("[0-9]{1,15}"))
                .mapToLong(digits -> Long.parseLong(digits) * BYTES_PER_KILOBYTE)
                .findFirst();
    }
}
