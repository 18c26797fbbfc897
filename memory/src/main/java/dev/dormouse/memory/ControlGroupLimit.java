package dev.dormouse.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * A control group's memory limit, of version 1 or 2.
 *
 * @param group the group's folder
 * @param limitBytes what its processes may hold together
 * @param usedBytes what they hold, without the page cache of files, which the kernel drops when the
 *     group needs the room
 */
public record ControlGroupLimit(Path group, long limitBytes, long usedBytes) {
    /** Names in the file system of one version of control groups. */
    private enum Version {
        V1("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        V2("memory.max", "memory.current", "");

        final String limitFile;
        final String usageFile;
        final String statPrefix;

        Version(String limitFile, String usageFile, String statPrefix) {
            this.limitFile = limitFile;
            this.usageFile = usageFile;
            this.statPrefix = statPrefix;
        }
    }

    /** Where a hierarchy is mounted, and which group of it is seen there. */
    private record Mount(Version version, Path point, String root) {}

    /** Version 1 prints the largest multiple of the page size for "no limit". */
    private static final long NO_LIMIT_FROM_BYTES = 1L << 60;

    /** What the group has left; not negative. */
    public long availableBytes() {
        return Math.max(0, limitBytes - usedBytes);
    }

    /**
     * Looks at the group of this process and at all groups around it.
     *
     * @param root {@code /}, or a test's copy of it
     */
    static Optional<ControlGroupLimit> tightest(Path root) {
        List<String> memberships = lines(root.resolve("proc/self/cgroup"));
        return lines(root.resolve("proc/self/mountinfo")).stream()
                .flatMap(line -> mount(line, root).stream())
                .flatMap(mount -> groups(mount, memberships))
                .min(Comparator.comparingLong(ControlGroupLimit::availableBytes));
    }

    /** From a line {@code 36 32 0:32 root point options - type source superOptions}. */
    private static Optional<Mount> mount(String line, Path root) {
        String[] halves = line.split(" - ", 2);
        if (halves.length < 2) {
            return Optional.empty();
        }
        String[] left = halves[0].split(" ", -1);
        String[] right = halves[1].split(" ", -1);
        if (left.length < 5 || right.length < 3) {
            return Optional.empty();
        }
        Path point = root.resolve(left[4].substring(1));
        if (right[0].equals("cgroup2")) {
            return Optional.of(new Mount(Version.V2, point, left[3]));
        }
        if (right[0].equals("cgroup") && List.of(right[2].split(",", -1)).contains("memory")) {
            return Optional.of(new Mount(Version.V1, point, left[3]));
        }
        return Optional.empty();
    }

    private static Stream<ControlGroupLimit> groups(Mount mount, List<String> memberships) {
        // A container may see its own group mounted as the top.
        String path = membership(mount.version, memberships).orElse("/");
        String below = path.startsWith(mount.root) ? path.substring(mount.root.length()) : "";
        Path group = mount.point.resolve(below.startsWith("/") ? below.substring(1) : below);
        return Stream.iterate(group, g -> g.startsWith(mount.point), Path::getParent)
                .flatMap(g -> limit(mount.version, g).stream());
    }

    /** From lines {@code 4:memory:/path} (version 1) and {@code 0::/path} (version 2). */
    private static Optional<String> membership(Version version, List<String> memberships) {
        return memberships.stream()
                .map(line -> line.split(":", 3))
                .filter(fields -> fields.length == 3)
                .filter(
                        fields ->
                                switch (version) {
                                    case V1 -> List.of(fields[1].split(",", -1)).contains("memory");
                                    case V2 -> fields[1].isEmpty();
                                })
                .map(fields -> fields[2])
                .findFirst();
    }

    private static Optional<ControlGroupLimit> limit(Version version, Path group) {
        OptionalLong limit = number(lines(group.resolve(version.limitFile)));
        OptionalLong usage = number(lines(group.resolve(version.usageFile)));
        if (limit.isEmpty() || usage.isEmpty() || limit.getAsLong() >= NO_LIMIT_FROM_BYTES) {
            return Optional.empty();
        }
        List<String> statistics = lines(group.resolve("memory.stat"));
        long fileBytes =
                statistic(statistics, version.statPrefix + "inactive_file")
                        + statistic(statistics, version.statPrefix + "active_file");
        return Optional.of(
                new ControlGroupLimit(
                        group, limit.getAsLong(), Math.max(0, usage.getAsLong() - fileBytes)));
    }

    private static long statistic(List<String> statistics, String name) {
        return statistics.stream()
                .filter(line -> line.startsWith(name + " "))
                .map(line -> number(List.of(line.substring(name.length() + 1))))
                .flatMapToLong(OptionalLong::stream)
                .findFirst()
                .orElse(0);
    }

    /** Empty for {@code max}, and where there is no such file. */
    private static OptionalLong number(List<String> lines) {
        if (lines.isEmpty() || !lines.getFirst().matches("[0-9]{1,19}")) {
            return OptionalLong.empty();
        }
        try {
            return OptionalLong.of(Long.parseLong(lines.getFirst()));
        } catch (NumberFormatException e) {
            return OptionalLong.empty();
        }
    }

    /** Empty where the file is missing or unreadable: then no limit of it is known. */
    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException e) {
            return List.of();
        }
    }
}
