package dev.dormouse.cli.bench;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.memory.MemoryUsage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * What a process holds at one moment, as the system counts it.
 *
 * @param pssBytes all its memory, shared pages divided by their users
 * @param anonymousBytes heap, stacks, malloc
 * @param descriptors open file descriptors
 */
record Footprint(long pssBytes, long anonymousBytes, long descriptors) {
    static Footprint ofProcess(long pid) {
        MemoryUsage memory = MemoryUsage.ofProcess(pid);
        try (Stream<Path> open = Files.list(Path.of("/proc/" + pid + "/fd"))) {
            return new Footprint(memory.pssBytes(), memory.anonymousBytes(), open.count());
        } catch (IOException e) {
            throw new FleetException("cannot count the descriptors of process " + pid, e);
        }
    }
}
