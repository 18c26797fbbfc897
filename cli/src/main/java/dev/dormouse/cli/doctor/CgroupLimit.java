package dev.dormouse.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.LongStream;

/** The memory limit of this process's control group and of those above it. */
final class CgroupLimit {
    private CgroupLimit() {}

    /** The smallest limit in bytes; empty when there is none. */
    static OptionalLong of(Machine machine) {
        return machine.text("/proc/self/cgroup").map(CgroupLimit::files).orElse(List.of()).stream()
                .flatMap(file -> machine.text(file).stream())
                .flatMapToLong(CgroupLimit::parse)
                .min();
    }

    /**
     * The files that may hold a limit, for version 2 and for version 1 with its memory controller.
     * In a container the path may be the host's and not exist; the mount's root, which is in the
     * list too, is then the container's own group.
     *
     * @param groups the text of {@code /proc/self/cgroup}
     */
    static List<String> files(String groups) {
        List<String> files = new ArrayList<>();
        for (String line : groups.lines().toList()) {
            String[] parts = line.split(":", 3);
            if (parts.length < 3) {
                continue;
            }
            if (parts[0].equals("0") && parts[1].isEmpty()) {
                addUpwards(files, "/sys/fs/cgroup", parts[2], "/memory.max");
            } else if (List.of(parts[1].split(",")).contains("memory")) {
                addUpwards(files, "/sys/fs/cgroup/memory", parts[2], "/memory.limit_in_bytes");
            }
        }
        return files;
    }

    private static void addUpwards(List<String> files, String mount, String path, String name) {
        String group = path.equals("/") ? "" : path;
        while (!group.isEmpty()) {
            files.add(mount + group + name);
            group = group.substring(0, Math.max(0, group.lastIndexOf('/')));
        }
        files.add(mount + name);
    }

    /** A limit file's number; none for {@code max}. */
    private static LongStream parse(String text) {
        try {
            return LongStream.of(Long.parseLong(text.strip()));
        } catch (NumberFormatException e) {
            return LongStream.empty();
        }
    }
}
