package dev.dormouse.testkit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A mapping of a process, from {@code /proc/<pid>/smaps} (proc_pid_smaps(5)).
 *
 * @param rights such as {@code r-xp}
 * @param name of the file, or what the kernel calls it; empty for anonymous memory
 * @param fields as they are written, by name
 */
public record ProcessMapping(String rights, String name, Map<String, String> fields) {
    private static final Pattern HEAD =
            Pattern.compile("[0-9a-f]+-[0-9a-f]+ (\\S+) \\S+ \\S+ \\S+ *(.*)");
    private static final Pattern FIELD = Pattern.compile("(\\w+): *(.*)");

    /** All of a process of this user, in the order of their addresses. */
    public static List<ProcessMapping> of(long pid) {
        List<ProcessMapping> mappings = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(Path.of("/proc", Long.toString(pid), "smaps"))) {
                Matcher head = HEAD.matcher(line);
                Matcher field = FIELD.matcher(line);
                if (head.matches()) {
                    mappings.add(new ProcessMapping(head.group(1), head.group(2), new TreeMap<>()));
                } else if (field.matches()) {
                    mappings.getLast().fields.put(field.group(1), field.group(2));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return mappings;
    }

    /** All of this process. */
    public static List<ProcessMapping> ofThisProcess() {
        return of(ProcessHandle.current().pid());
    }

    /** A field that the kernel writes in kB, which are KiB. */
    public long kib(String field) {
        return Long.parseLong(fields.getOrDefault(field, "").replaceAll("\\D", ""));
    }

    /** Whether the kernel has noted this about it, by two letters ({@code VmFlags}). */
    public boolean hasFlag(String flag) {
        return List.of(fields.getOrDefault("VmFlags", "").split(" ")).contains(flag);
    }
}
