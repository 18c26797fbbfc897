package dev.dormouse.cli.doctor;

import java.util.List;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Memory that the machine has, that this process may use, and that it may pin. */
final class MemoryCheck {
    /** The demo's two engines, its oracle and the router at their default sizes. */
    private static final long DEMO_BYTES = 2 * Bytes.GIB;

    private static final Pattern LOCKED =
            Pattern.compile("^Max locked memory\\s+(\\S+)", Pattern.MULTILINE);

    private MemoryCheck() {}

    static List<Finding> findings(Machine machine) {
        return List.of(
                memory(machine.text("/proc/meminfo").orElse(""), CgroupLimit.of(machine)),
                locked(
                        machine.text("/proc/self/limits").orElse(""),
                        !machine.names("/sys/class/infiniband").isEmpty()));
    }

    /**
     * @param memInfo the text of {@code /proc/meminfo}
     * @param cgroupLimit what the process's control groups allow, in bytes
     */
    static Finding memory(String memInfo, OptionalLong cgroupLimit) {
        OptionalLong total = field(memInfo, "MemTotal");
        OptionalLong available = field(memInfo, "MemAvailable");
        if (total.isEmpty() || available.isEmpty()) {
            return Finding.warn("memory", "unknown", "mount /proc");
        }
        boolean limited = cgroupLimit.isPresent() && cgroupLimit.getAsLong() < total.getAsLong();
        String text =
                "%s, %s available, control group limit %s"
                        .formatted(
                                Bytes.text(total.getAsLong()),
                                Bytes.text(available.getAsLong()),
                                limited ? Bytes.text(cgroupLimit.getAsLong()) : "none");
        long usable =
                limited
                        ? Math.min(available.getAsLong(), cgroupLimit.getAsLong())
                        : available.getAsLong();
        return usable < DEMO_BYTES
                ? Finding.warn(
                        "memory", text, "the demo needs " + Bytes.text(DEMO_BYTES) + ": free some")
                : Finding.ok("memory", text);
    }

    /**
     * @param limits the text of {@code /proc/self/limits}
     * @param rdma whether there is a device that pins what is registered with it
     */
    static Finding locked(String limits, boolean rdma) {
        Matcher matcher = LOCKED.matcher(limits);
        String value = matcher.find() ? matcher.group(1) : "unknown";
        boolean bounded = value.chars().allMatch(Character::isDigit);
        String text = bounded ? Bytes.text(Long.parseLong(value)) : value;
        return bounded && rdma
                ? Finding.warn(
                        "locked memory",
                        text + ": InfiniBand cannot register a larger KV cache",
                        "ulimit -l unlimited (memlock in /etc/security/limits.conf)")
                : Finding.ok("locked memory", text);
    }

    private static OptionalLong field(String memInfo, String name) {
        Matcher matcher =
                Pattern.compile("^" + name + ":\\s+(\\d+) kB", Pattern.MULTILINE).matcher(memInfo);
        return matcher.find()
                ? OptionalLong.of(Long.parseLong(matcher.group(1)) << 10)
                : OptionalLong.empty();
    }
}
