package dev.dormouse.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The UCX transports that this machine can use, from UCX's modules and from what they need. The
 * wheel brings no {@code ucx_info}, which would ask UCX itself.
 */
final class UcxTransports {
    private static final String TOPIC = "UCX transports";
    private static final int CAP_SYS_PTRACE = 19;

    private UcxTransports() {}

    static Finding finding(Machine machine, NixlLibraries nixl) {
        Optional<String> uct = nixl.ucx().flatMap(ucx -> ucx.path("libuct"));
        if (uct.isEmpty()) {
            return Finding.fail(TOPIC, "none", "see NIXL above");
        }
        // UCX keeps its modules in a folder beside its libraries.
        String libraries = uct.get().substring(0, uct.get().lastIndexOf('/'));
        List<String> modules = machine.names(libraries + "/ucx");

        List<String> usable = new ArrayList<>();
        // Built into libuct itself.
        usable.add("self");
        usable.add("tcp (" + String.join(", ", machine.names("/sys/class/net")) + ")");
        usable.add("posix");
        usable.add("sysv");
        List<String> hcas = machine.names("/sys/class/infiniband");
        if (has(modules, "libuct_ib.") && !hcas.isEmpty()) {
            usable.add("InfiniBand (" + String.join(", ", hcas) + ")");
        }
        if (has(modules, "libuct_cuda.") && machine.exists("/dev/nvidia0")) {
            usable.add("CUDA");
        }
        if (!has(modules, "libuct_cma.")) {
            return Finding.ok(TOPIC, String.join(", ", usable));
        }
        Optional<String> obstacle =
                cmaObstacle(
                        machine.text("/proc/sys/kernel/yama/ptrace_scope"),
                        machine.text("/proc/self/status").orElse(""));
        if (obstacle.isPresent()) {
            return Finding.warn(
                    TOPIC,
                    String.join(", ", usable) + "; not cma: " + obstacle.get(),
                    "sysctl kernel.yama.ptrace_scope=1 (without cma, engines on one host move KV"
                            + " several times slower)");
        }
        usable.add("cma");
        return Finding.ok(TOPIC, String.join(", ", usable));
    }

    /**
     * Why one process may not read another's memory. UCX asks for permission under scope 1 itself;
     * 2 wants a capability; 3 forbids it. Without the file there is no such restriction.
     *
     * @param ptraceScope the text of {@code /proc/sys/kernel/yama/ptrace_scope}
     * @param status the text of {@code /proc/self/status}
     */
    static Optional<String> cmaObstacle(Optional<String> ptraceScope, String status) {
        String scope = ptraceScope.map(String::strip).orElse("0");
        boolean permitted =
                switch (scope) {
                    case "0", "1" -> true;
                    case "2" -> hasCapability(status, CAP_SYS_PTRACE);
                    default -> false;
                };
        return permitted ? Optional.empty() : Optional.of("ptrace_scope is " + scope);
    }

    private static boolean hasCapability(String status, int number) {
        return status.lines()
                .filter(line -> line.startsWith("CapEff:"))
                .map(line -> line.substring("CapEff:".length()).strip())
                .anyMatch(mask -> (Long.parseUnsignedLong(mask, 16) >>> number & 1) == 1);
    }

    private static boolean has(List<String> modules, String prefix) {
        return modules.stream().anyMatch(module -> module.startsWith(prefix + "so"));
    }
}
