package dev.dormouse.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * What the machine has, and what a control group leaves this process of it.
 *
 * @param totalBytes all memory of the machine
 * @param availableBytes what could be taken without swapping, as the kernel estimates it ({@code
 *     MemAvailable})
 * @param controlGroup the tightest limit on this process; empty when there is none
 */
public record SystemMemory(
        long totalBytes, long availableBytes, Optional<ControlGroupLimit> controlGroup) {
    /**
     * Reads the state of now.
     *
     * @throws MemoryException if {@code /proc} cannot be read
     */
    public static SystemMemory read() {
        return read(Path.of("/"));
    }

    static SystemMemory read(Path root) {
        Path file = root.resolve("proc/meminfo");
        try {
            String text = Files.readString(file);
            return new SystemMemory(
                    field(text, "MemTotal"),
                    field(text, "MemAvailable"),
                    ControlGroupLimit.tightest(root));
        } catch (IOException e) {
            throw new MemoryException("read " + file + " failed: " + e.getMessage(), e);
        }
    }

    /** What this process could still get: the smaller of machine and control group. */
    public long allocatableBytes() {
        long groupBytes =
                controlGroup.map(ControlGroupLimit::availableBytes).orElse(Long.MAX_VALUE);
        return Math.min(availableBytes, groupBytes);
    }

    private static long field(String text, String name) {
        return KernelText.kilobytes(text, name)
                .orElseThrow(
                        () -> new MemoryException("parse /proc/meminfo failed: no field " + name));
    }
}
