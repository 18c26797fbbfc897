package dev.dormouse.cli.bench;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.memory.MemoryUsage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * What a process holds at one moment, as the system counts it.
 *
 * @param pssBytes all its memory, shared pages divided by their users
 * @param anonymousBytes heap, stacks, malloc
 * @param mappings lines of its memory map
 * @param descriptors open file descriptors
 * @param threads Java's and others
 */
record Footprint(
        long pssBytes, long anonymousBytes, long mappings, long descriptors, long threads) {
    static Footprint ofProcess(long pid) {
        MemoryUsage memory = MemoryUsage.ofProcess(pid);
        Path process = Path.of("/proc/" + pid);
        try (Stream<String> maps = Files.lines(process.resolve("maps"), ISO_8859_1);
                Stream<Path> open = Files.list(process.resolve("fd"));
                Stream<Path> threads = Files.list(process.resolve("task"))) {
            return new Footprint(
                    memory.pssBytes(),
                    memory.anonymousBytes(),
                    maps.count(),
                    open.count(),
                    threads.count());
        } catch (IOException | UncheckedIOException e) {
            throw new FleetException("cannot count what process " + pid + " holds", e);
        }
    }
}
