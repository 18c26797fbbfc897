package dev.dormouse.cli.soak;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.memory.MemoryUsage;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What a process has while nothing is asked of it.
 *
 * @param threads by name, without those of which the JVM itself decides how many there are
 * @param descriptors by what they stand for
 * @param heapBytes used after a collection
 * @param pssBytes after a collection
 */
record Rest(
        String name,
        Map<String, Integer> threads,
        Map<String, Integer> descriptors,
        long heapBytes,
        long pssBytes) {
    private static final Pattern OF_THE_JVM =
            Pattern.compile(
                    "(C[12] CompilerThre|GC Thread|G1 |ForkJoinPool-|Attach|process reap).*");
    private static final Pattern NUMBER = Pattern.compile("(?<=_posix_)\\p{XDigit}+|\\d+");
    private static final Pattern USED = Pattern.compile(" used (\\d+)K");

    /** What a process has open. */
    record Open(Map<String, Integer> threads, Map<String, Integer> descriptors) {
        static Open of(ChildProcess process) {
            try {
                return new Open(Rest.threads(process.pid()), Rest.descriptors(process.pid()));
            } catch (IOException e) {
                throw new AssertionError(process.name() + " cannot be looked at: " + e, e);
            }
        }
    }

    /** Of a process for which {@code open} holds for a while. */
    static Rest of(ChildProcess process, Open open, long heapBytes) {
        return new Rest(
                process.name(),
                open.threads,
                open.descriptors,
                heapBytes,
                MemoryUsage.ofProcess(process.pid()).pssBytes());
    }

    /** What a process's heap has in use after a collection. */
    static long heapBytes(ChildProcess process) {
        try {
            var _ = jcmd(process.pid(), "GC.run");
            Matcher used = USED.matcher(jcmd(process.pid(), "GC.heap_info"));
            if (!used.find()) {
                throw new AssertionError("jcmd does not tell how much of the heap is used");
            }
            return Long.parseLong(used.group(1)) << 10;
        } catch (IOException e) {
            throw new AssertionError(process.name() + " cannot be asked: " + e, e);
        }
    }

    private static Map<String, Integer> threads(long pid) throws IOException {
        Map<String, Integer> threads =
                count(Path.of("/proc/" + pid + "/task"), task -> read(task.resolve("comm")));
        threads.keySet().removeIf(name -> OF_THE_JVM.matcher(name).matches());
        return threads;
    }

    private static Map<String, Integer> descriptors(long pid) throws IOException {
        return count(Path.of("/proc/" + pid + "/fd"), Rest::target);
    }

    /** How many entries of a folder are of each kind; an entry that vanishes is none. */
    private static Map<String, Integer> count(Path folder, Function<Path, String> kind)
            throws IOException {
        Map<String, Integer> counts = new TreeMap<>();
        try (Stream<Path> entries = Files.list(folder)) {
            for (Path entry : entries.toList()) {
                String name = NUMBER.matcher(kind.apply(entry)).replaceAll("#");
                if (!name.isEmpty()) {
                    counts.merge(name, 1, Integer::sum);
                }
            }
        }
        return counts;
    }

    private static String read(Path file) {
        try {
            return Files.readString(file).strip();
        } catch (IOException e) {
            return ""; // the thread has ended
        }
    }

    private static String target(Path link) {
        try {
            String target = Files.readSymbolicLink(link).toString();
            return target.endsWith(".jar") ? "a jar" : target;
        } catch (NoSuchFileException e) {
            return "";
        } catch (IOException e) {
            return "unreadable";
        }
    }

    private static String jcmd(long pid, String command) throws IOException {
        Path tool = Path.of(System.getProperty("java.home"), "bin", "jcmd");
        Process jcmd =
                new ProcessBuilder(tool.toString(), Long.toString(pid), command)
                        .redirectErrorStream(true)
                        .start();
        return new String(jcmd.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    /** What there is more of than at an earlier rest, beyond the limits on memory. */
    List<String> leaksSince(Rest earlier, long heapLimitBytes, long pssLimitBytes) {
        List<String> leaks = new ArrayList<>();
        compare("threads", earlier.threads, threads, leaks);
        compare("descriptors", earlier.descriptors, descriptors, leaks);
        compare("heap after a collection", earlier.heapBytes, heapBytes, heapLimitBytes, leaks);
        compare("PSS", earlier.pssBytes, pssBytes, pssLimitBytes, leaks);
        return leaks;
    }

    private void compare(
            String what, long before, long after, long limitBytes, List<String> leaks) {
        if (after - before > limitBytes) {
            leaks.add(
                    "%s: %s was %d KiB and is %d KiB, which may be %d KiB more"
                            .formatted(name, what, before >> 10, after >> 10, limitBytes >> 10));
        }
    }

    private void compare(
            String what,
            Map<String, Integer> before,
            Map<String, Integer> after,
            List<String> leaks) {
        after.forEach(
                (kind, count) -> {
                    int then = before.getOrDefault(kind, 0);
                    if (count > then) {
                        leaks.add(
                                "%s: %d more %s: `%s` was %d and is %d"
                                        .formatted(name, count - then, what, kind, then, count));
                    }
                });
    }

    private static int total(Map<String, Integer> counts) {
        return counts.values().stream().mapToInt(Integer::intValue).sum();
    }

    @Override
    public String toString() {
        return "%s: threads %d, descriptors %d %s, heap %d KiB, PSS %d KiB"
                .formatted(
                        name,
                        total(threads),
                        total(descriptors),
                        descriptors,
                        heapBytes >> 10,
                        pssBytes >> 10);
    }
}
