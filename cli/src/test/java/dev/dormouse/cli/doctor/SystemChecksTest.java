package dev.dormouse.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.doctor.Finding.Level;
import java.nio.file.Path;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the doctor says about JVM, processor and memory. */
final class SystemChecksTest {
    private static final String MEMINFO =
            """
            MemTotal:       24661000 kB
            MemFree:        11000000 kB
            MemAvailable:   20971520 kB
            """;

    @TempDir private Path root;

    @Test
    void aJvmOfAnotherVersionOrWithoutVectorsIsAFailure() {
        assertThat(new JdkCheck(25, "25.0.3", true).finding().level()).isEqualTo(Level.OK);
        assertThat(new JdkCheck(24, "24", true).finding().level()).isEqualTo(Level.FAIL);
        assertThat(new JdkCheck(25, "25.0.3", false).finding().remedy().orElseThrow())
                .contains("--add-modules=jdk.incubator.vector");
    }

    @Test
    void theTestsOwnJvmPasses() {
        assertThat(JdkCheck.ofThisJvm().finding().level()).isEqualTo(Level.OK);
    }

    @Test
    void avxIsReadFromTheFlags() {
        Finding both = CpuCheck.finding(cpu("fpu avx2 avx512f avx512bw avx512dq avx512vl"), 2, 512);
        Finding avx2 = CpuCheck.finding(cpu("fpu avx2 avx512f"), 2, 256);
        Finding neither = CpuCheck.finding(cpu("fpu avx sse2"), 2, 128);

        assertThat(both)
                .isEqualTo(
                        Finding.ok(
                                "CPU", "EPYC 1, 2 processors, AVX-512, Vector API with 512 bits"));
        assertThat(avx2.text()).contains("AVX2, no AVX-512");
        assertThat(neither.level()).isEqualTo(Level.WARN);
        assertThat(neither.text()).contains("no AVX2");
    }

    @Test
    void vectorsNarrowerThanTheProcessorsAreAWarning() {
        assertThat(CpuCheck.finding(cpu("avx2"), 2, 128).remedy().orElseThrow()).contains("UseAVX");
        assertThat(CpuCheck.finding(cpu("avx2"), 2, 0).text()).contains("Vector API absent");
    }

    @Test
    void aProcessorThatSaysNothingIsNotAFailure() {
        assertThat(CpuCheck.finding("", 4, 128).text()).startsWith("unknown model, 4 processors");
    }

    @Test
    void memoryIsJudgedByTheSmallerOfAvailableAndLimit() {
        assertThat(MemoryCheck.memory(MEMINFO, OptionalLong.empty()))
                .isEqualTo(
                        Finding.ok(
                                "memory",
                                "23.5 GiB, 20.0 GiB available, control group limit none"));
        Finding limited = MemoryCheck.memory(MEMINFO, OptionalLong.of(1L << 30));
        assertThat(limited.level()).isEqualTo(Level.WARN);
        assertThat(limited.text()).endsWith("limit 1.0 GiB");
        assertThat(MemoryCheck.memory(MEMINFO.replace("20971520", "1048576"), OptionalLong.empty()))
                .extracting(Finding::level)
                .isEqualTo(Level.WARN);
        assertThat(MemoryCheck.memory("", OptionalLong.empty()).level()).isEqualTo(Level.WARN);
    }

    @Test
    void aLimitAboveTheMachinesMemoryIsNone() {
        assertThat(MemoryCheck.memory(MEMINFO, OptionalLong.of(9223372036854771712L)).text())
                .endsWith("limit none");
    }

    @Test
    void lockedMemoryMattersToInfiniBandOnly() {
        String limits =
                """
                Limit                     Soft Limit           Hard Limit           Units
                Max locked memory         8388608              unlimited            bytes
                Max file locks            unlimited            unlimited            locks
                """;
        assertThat(MemoryCheck.locked(limits, false))
                .isEqualTo(Finding.ok("locked memory", "8 MiB"));
        assertThat(MemoryCheck.locked(limits, true).level()).isEqualTo(Level.WARN);
        assertThat(MemoryCheck.locked(limits.replace("8388608", "unlimited"), true))
                .isEqualTo(Finding.ok("locked memory", "unlimited"));
    }

    @Test
    void theSmallestLimitOfTheUnifiedHierarchyCounts() throws Exception {
        Machine machine =
                new FakeMachine(root)
                        .file("/proc/self/cgroup", "0::/user.slice/session\n")
                        .file("/sys/fs/cgroup/user.slice/session/memory.max", "max\n")
                        .file("/sys/fs/cgroup/user.slice/memory.max", "3000\n")
                        .machine();

        assertThat(CgroupLimit.of(machine)).hasValue(3000);
    }

    @Test
    void theLimitOfAContainerIsAtItsMountsRoot() throws Exception {
        Machine machine =
                new FakeMachine(root)
                        .file("/proc/self/cgroup", "5:cpu:/\n4:memory:/docker/12ab\n0::/\n")
                        .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n")
                        .machine();

        assertThat(CgroupLimit.of(machine)).hasValue(4000);
    }

    @Test
    void withoutControlGroupsThereIsNoLimit() throws Exception {
        assertThat(CgroupLimit.of(new FakeMachine(root).machine())).isEmpty();
        assertThat(
                        CgroupLimit.of(
                                new FakeMachine(root)
                                        .file("/proc/self/cgroup", "nonsense\n0::/\n")
                                        .file("/sys/fs/cgroup/memory.max", "max\n")
                                        .machine()))
                .isEmpty();
    }

    private static String cpu(String flags) {
        return "processor\t: 0\nmodel name\t: EPYC 1\nflags\t\t: "
                + flags
                + "\n\nprocessor\t: 1\nmodel name\t: EPYC 1\nflags\t\t: none\n";
    }
}
