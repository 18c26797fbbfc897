package dev.dormouse.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** This process's open descriptors, as the kernel lists them. */
final class OpenFiles {
    private OpenFiles() {}

    /** What the descriptors of sleepable memory point to. */
    static List<String> ofSleepableMemory() {
        return targets().stream().filter(target -> target.contains("memfd:dormouse-")).toList();
    }

    static List<String> targets() {
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
}
