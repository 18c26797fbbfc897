package dev.dormouse.cli.doctor;

import java.util.List;
import java.util.Set;
import jdk.incubator.vector.FloatVector;

/** The processor's vector instructions, and what the Vector API makes of them. */
final class CpuCheck {
    private static final String TOPIC = "CPU";

    /** What the Vector API needs to use 512 bits for floats and bytes. */
    private static final Set<String> AVX512 = Set.of("avx512f", "avx512bw", "avx512dq", "avx512vl");

    private CpuCheck() {}

    static Finding finding(Machine machine, boolean hasVectorModule) {
        return finding(
                machine.text("/proc/cpuinfo").orElse(""),
                Runtime.getRuntime().availableProcessors(),
                hasVectorModule ? VectorApi.preferredBits() : 0);
    }

    /**
     * @param cpuInfo the text of {@code /proc/cpuinfo}
     * @param processors how many processors this process may use
     * @param vectorBits the Vector API's preferred size, 0 when it is not there
     */
    static Finding finding(String cpuInfo, int processors, int vectorBits) {
        Set<String> flags = Set.of(field(cpuInfo, "flags").split(" "));
        boolean avx512 = flags.containsAll(AVX512);
        boolean avx2 = flags.contains("avx2");
        String model = field(cpuInfo, "model name");
        String text =
                "%s, %d processors, %s, Vector API %s"
                        .formatted(
                                model.isEmpty() ? "unknown model" : model,
                                processors,
                                avx512 ? "AVX-512" : avx2 ? "AVX2, no AVX-512" : "no AVX2",
                                vectorBits == 0 ? "absent" : "with " + vectorBits + " bits");
        if (avx2 && vectorBits < 256) {
            return Finding.warn(
                    TOPIC,
                    text,
                    "remove -XX:UseAVX and -XX:MaxVectorSize from DORMOUSE_JAVA_OPTS and"
                            + " JAVA_TOOL_OPTIONS");
        }
        if (!avx2 && !avx512) {
            return Finding.warn(
                    TOPIC,
                    text,
                    "kernels will be slow; in a virtual machine, pass the host's CPU model through");
        }
        return Finding.ok(TOPIC, text);
    }

    private static String field(String cpuInfo, String name) {
        List<String> values =
                cpuInfo.lines()
                        .filter(line -> line.startsWith(name) && line.contains(":"))
                        .map(line -> line.substring(line.indexOf(':') + 1).strip())
                        .toList();
        return values.isEmpty() ? "" : values.getFirst();
    }

    /** Apart, since merely loading it fails where the module is missing. */
    private static final class VectorApi {
        static int preferredBits() {
            return FloatVector.SPECIES_PREFERRED.vectorBitSize();
        }
    }
}
