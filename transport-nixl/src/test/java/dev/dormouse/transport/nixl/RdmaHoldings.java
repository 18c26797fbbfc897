package dev.dormouse.transport.nixl;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.summingLong;

import dev.dormouse.testkit.ProcessMapping;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a process holds of the machine's memory and of its RDMA devices, by the kernel's own count.
 *
 * @param regions memory regions of RDMA devices
 * @param queuePairs their queue pairs
 * @param pinnedKib what they have pinned ({@code VmPin})
 * @param residentKib the process's share of memory (PSS), without the code that its JVM has
 *     compiled, which grows for as long as something becomes frequent
 * @param descriptors open file descriptors
 */
record RdmaHoldings(
        int regions, int queuePairs, long pinnedKib, long residentKib, int descriptors) {
    private static final String COMPILED = "compiled";
    private static final Pattern OWNER = Pattern.compile("\\bpid (\\d+)");
    private static final Pattern NUMBER = Pattern.compile("\\d+");

    /** Of a process of this user. */
    static RdmaHoldings of(long pid) {
        Path process = Path.of("/proc", Long.toString(pid));
        return new RdmaHoldings(
                resources("mr", process),
                resources("qp", process),
                kib(process.resolve("status"), "VmPin:"),
                shares(pid).entrySet().stream()
                        .filter(share -> !share.getKey().equals(COMPILED))
                        .mapToLong(Map.Entry::getValue)
                        .sum(),
                Objects.requireNonNull(process.resolve("fd").toFile().list()).length);
    }

    /** Where a process's share of memory lies, by kind of mapping, in KiB. */
    static Map<String, Long> shares(long pid) {
        return ProcessMapping.of(pid).stream()
                .collect(
                        groupingBy(
                                mapping -> kind(mapping.rights(), mapping.name()),
                                TreeMap::new,
                                summingLong(mapping -> mapping.kib("Pss"))));
    }

    private static String kind(String rights, String name) {
        if (rights.contains("x") && name.isEmpty()) {
            return COMPILED;
        }
        if (name.isEmpty()) {
            return "anonymous";
        }
        return name.startsWith("/dev/infiniband")
                ? "queues"
                : name.equals("[heap]") ? "malloc" : "files";
    }

    /** What the whole machine has free. */
    static long freeKib() {
        return kib(Path.of("/proc/meminfo"), "MemFree:");
    }

    /** The kernel notes the thread that made a thing, not the process. */
    private static int resources(String kind, Path process) {
        File threads = process.resolve("task").toFile();
        return (int)
                show(kind)
                        .lines()
                        .map(OWNER::matcher)
                        .filter(Matcher::find)
                        .filter(owner -> new File(threads, owner.group(1)).exists())
                        .count();
    }

    private static String show(String kind) {
        try {
            Process rdma = new ProcessBuilder("rdma", "resource", "show", kind).start();
            String lines = new String(rdma.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (rdma.waitFor() != 0) {
                throw new IllegalStateException("rdma resource show " + kind + " failed");
            }
            return lines;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private static long kib(Path file, String field) {
        try {
            return Files.readAllLines(file).stream()
                    .filter(line -> line.startsWith(field))
                    .map(NUMBER::matcher)
                    .filter(Matcher::find)
                    .mapToLong(number -> Long.parseLong(number.group()))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(file + " has no " + field));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public String toString() {
        return "regions=%d queuePairs=%d pinned=%.1fMiB resident=%dKiB descriptors=%d"
                .formatted(regions, queuePairs, pinnedKib / 1024.0, residentKib, descriptors);
    }
}
