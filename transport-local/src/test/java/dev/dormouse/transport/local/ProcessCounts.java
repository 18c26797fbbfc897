package dev.dormouse.transport.local;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/**
 * What this process holds that its transports could have left behind.
 *
 * @param descriptors open file descriptors
 * @param mappings of files in memory
 * @param threads of transports
 */
record ProcessCounts(int descriptors, long mappings, long threads) {
    static ProcessCounts now() {
        try (var lines = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            return new ProcessCounts(
                    Objects.requireNonNull(new File("/proc/self/fd").list()).length,
                    lines.filter(line -> line.contains("memfd:")).count(),
                    Thread.getAllStackTraces().keySet().stream()
                            .filter(
                                    thread ->
                                            thread.getName().startsWith(CopyThreads.NAME)
                                                    || thread.getName().equals("dormouse-local-io"))
                            .count());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
