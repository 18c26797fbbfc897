package dev.dormouse.memory;

import dev.dormouse.testkit.ProcessMapping;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** This process's descriptors and mappings, as the kernel lists them. */
final class ProcSelf {
    private static final String MEMORY_FILE = "/memfd:dormouse-";

    private ProcSelf() {}

    /** What the open descriptors point to. */
    static List<String> descriptors() {
        List<String> targets = new ArrayList<>();
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            for (Path descriptor : descriptors.toList()) {
                if (Files.isSymbolicLink(descriptor)) {
                    targets.add(Files.readSymbolicLink(descriptor).toString());
                }
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return targets;
    }

    static List<String> mappings() {
        try {
            return Files.readAllLines(Path.of("/proc/self/maps"));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** Mappings that were advised to be of huge pages, as kept content is. */
    static long hugeMappings() {
        return ProcessMapping.ofThisProcess().stream()
                .filter(mapping -> mapping.hasFlag("hg"))
                .count();
    }

    /** Descriptors and mappings that keep pages of sleepable memory alive. */
    static List<String> memoryFiles() {
        return Stream.concat(descriptors().stream(), mappings().stream())
                .filter(line -> line.contains(MEMORY_FILE))
                .toList();
    }
}
