package dev.dormouse.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/**
 * What a process holds, from {@code /proc/<pid>/smaps_rollup} (proc_pid_smaps_rollup(5); Linux 5.3
 * or newer). The kernel walks the process's page table for it: milliseconds per GiB, so not for a
 * busy loop.
 *
 * @param rssBytes all pages in its page table, shared ones in full
 * @param pssBytes the same, with each page divided by the number of processes that map it; the sum
 *     over all processes is what they hold together
 * @param pssShmemBytes the part of {@code pssBytes} in memory files, which is where memory that is
 *     awake lies
 * @param anonymousBytes pages without a file: heap, stacks, malloc
 * @param swapBytes pages that were swapped out; in none of the others
 */
public record MemoryUsage(
        long rssBytes, long pssBytes, long pssShmemBytes, long anonymousBytes, long swapBytes) {
    /** Of this process. */
    public static MemoryUsage ofThisProcess() {
        return read(Path.of("/proc/self/smaps_rollup"));
    }

    /**
     * Of another process, which must run as the same user.
     *
     * @throws MemoryException if there is no such process, or it may not be looked at
     */
    public static MemoryUsage ofProcess(long pid) {
        return read(Path.of("/proc/" + pid + "/smaps_rollup"));
    }

    /**
     * Reads the file's text.
     *
     * @throws MemoryException if one of the fields is missing
     */
    static MemoryUsage parse(String text) {
        return new MemoryUsage(
                field(text, "Rss"),
                field(text, "Pss"),
                field(text, "Pss_Shmem"),
                field(text, "Anonymous"),
                field(text, "Swap"));
    }

    private static MemoryUsage read(Path file) {
        try {
            return parse(Files.readString(file));
        } catch (IOException e) {
            throw new MemoryException("read " + file + " failed: " + e.getMessage(), e);
        }
    }

    private static long field(String text, String name) {
        OptionalLong bytes = KernelText.kilobytes(text, name);
        return bytes.orElseThrow(
                () ->
                        new MemoryException(
                                "parse smaps_rollup failed: no field %s; needs Linux 5.3 or newer"
                                        .formatted(name)));
    }
}
