package dev.dormouse.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.dormouse.cli.doctor.Finding.Level;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the doctor says about NIXL, UCX, GPUs and the model. */
final class NativePartsTest {
    private static final String NIXL = "/cache/nixl/.libs";
    private static final String UCT = "/cache/nixl/nixl_cu12.libs/libuct-1.so.0";
    private static final String LIBC = "\tlibc.so.6 => /lib/libc.so.6 (0x00007f1b48c64000)";

    @TempDir private Path root;

    @Test
    void lddTellsFoundFromMissing() {
        SharedLibrary library =
                SharedLibrary.parse(
                        """
                        \tlinux-vdso.so.1 (0x00007ffd)
                        \tlibuct-11.so.0 => /a folder/libuct-11.so.0 (0x00007f1b48c64000)
                        \tlibcuda.so.1 => not found
                        \tlibcuda.so.1 => not found
                        \t/lib64/ld-linux-x86-64.so.2 (0x00007f1b48c64000)
                        """);

        assertThat(library.missing()).containsExactly("libcuda.so.1");
        assertThat(library.path("libuct")).hasValue("/a folder/libuct-11.so.0");
        assertThat(library.path("libucp")).isEmpty();
    }

    @Test
    void nixlIsReportedWithVersionAndPlugins() throws Exception {
        Machine machine =
                nixl().file(NIXL + "/plugins/libplugin_GDS.so", "")
                        .file(NIXL + "/plugins/libtelemetry_exporter.so", "")
                        .file("/cache/nixl/nixl_cu12-1.5.1.dist-info/METADATA", "")
                        .answer(
                                "ldd " + NIXL + "/plugins/libplugin_GDS.so",
                                "\tlibx.so => not found")
                        .machine();

        assertThat(NixlLibraries.find(machine).findings())
                .containsExactly(
                        Finding.ok("NIXL", "1.5.1, " + NIXL),
                        Finding.ok("NIXL plugins", "UCX; not, for want of libraries: GDS"));
    }

    @Test
    void aMissingNixlIsAFailureAndSoAreItsTransports() {
        Machine without = new FakeMachine(root).machine();
        Machine wrong = new FakeMachine(root).variable("DORMOUSE_NIXL_DIR", "/no").machine();

        assertThat(NixlLibraries.find(without).findings())
                .singleElement()
                .extracting(Finding::level, Finding::text)
                .containsExactly(Level.FAIL, "not found");
        assertThat(NixlLibraries.find(wrong).findings())
                .singleElement()
                .extracting(Finding::text)
                .isEqualTo("no libnixl_capi.so in /no");
        assertThat(UcxTransports.finding(without, NixlLibraries.find(without)).level())
                .isEqualTo(Level.FAIL);
    }

    @Test
    void librariesThatNixlNeedsAreNamed() throws Exception {
        FakeMachine fake =
                nixl().answer("ldd " + NIXL + "/libnixl_capi.so", "\tlibstdc++.so.6 => not found")
                        .answer(
                                "ldd " + NIXL + "/plugins/libplugin_UCX.so",
                                "\tlibnuma.so.1 => not found");

        assertThat(NixlLibraries.find(fake.machine()).findings())
                .extracting(Finding::level, finding -> finding.remedy().orElse(""))
                .containsExactly(
                        tuple(Level.FAIL, "install libstdc++.so.6"),
                        tuple(Level.FAIL, "UCX is needed: install libnuma.so.1"));
    }

    @Test
    void transportsAreThoseWhoseModulesAndDevicesAreThere() throws Exception {
        FakeMachine fake = nixl().file("/sys/class/net/lo", "").file(module("cma"), "");
        assertThat(transports(fake))
                .isEqualTo(Finding.ok("UCX transports", "self, tcp (lo), posix, sysv, cma"));

        fake.file(module("ib"), "").file(module("cuda"), "");
        assertThat(transports(fake).text()).doesNotContain("InfiniBand", "CUDA");

        fake.file("/sys/class/infiniband/mlx5_0", "").file("/dev/nvidia0", "");
        assertThat(transports(fake).text()).contains("InfiniBand (mlx5_0)", "CUDA", "cma");
    }

    @Test
    void forbiddenCmaIsAWarning() throws Exception {
        Finding finding =
                transports(
                        nixl().file(module("cma"), "")
                                .file("/proc/sys/kernel/yama/ptrace_scope", "3\n"));

        assertThat(finding.level()).isEqualTo(Level.WARN);
        assertThat(finding.text()).endsWith("not cma: ptrace_scope is 3");
    }

    @Test
    void cmaFollowsPtraceScopeAndCapability() {
        String none = "Name:\tjava\nCapEff:\t0000000000000000\n";
        String ptrace = "CapEff:\t0000000000080000\n";

        assertThat(UcxTransports.cmaObstacle(Optional.empty(), none)).isEmpty();
        assertThat(UcxTransports.cmaObstacle(Optional.of("0\n"), none)).isEmpty();
        assertThat(UcxTransports.cmaObstacle(Optional.of("1\n"), none)).isEmpty();
        assertThat(UcxTransports.cmaObstacle(Optional.of("2\n"), none)).isPresent();
        assertThat(UcxTransports.cmaObstacle(Optional.of("2\n"), ptrace)).isEmpty();
        assertThat(UcxTransports.cmaObstacle(Optional.of("3\n"), ptrace)).isPresent();
    }

    @Test
    void gpusAreListedWithWhatUcxLacksForThem() throws Exception {
        FakeMachine fake = nixl().file("/cache/nixl/nixl_cu12.libs/ucx/libucm_cuda.so.0.0.0", "");
        assertThat(gpu(fake)).isEqualTo(Finding.ok("GPU", "none; engines run on the host"));

        fake.answer(
                "nvidia-smi --query-gpu=name,memory.total --format=csv,noheader",
                "NVIDIA H200, 143771 MiB",
                "NVIDIA H200, 143771 MiB");
        assertThat(gpu(fake).text()).isEqualTo("NVIDIA H200, 143771 MiB; NVIDIA H200, 143771 MiB");

        fake.answer(
                "ldd /cache/nixl/nixl_cu12.libs/ucx/libucm_cuda.so.0.0.0",
                "\tlibcudart.so.12 => not found");
        assertThat(gpu(fake).level()).isEqualTo(Level.WARN);
        assertThat(gpu(fake).text()).endsWith("UCX lacks libcudart.so.12");
    }

    @Test
    void theModelIsComparedWithTheSumTakenWhenFetched() throws Exception {
        FakeMachine fake = new FakeMachine(root).variable("DORMOUSE_MODEL", "/m/a.gguf");
        fake.file("/m/a.gguf", "GGUFabc");
        assertThat(ModelCheck.finding(fake.machine()).text())
                .endsWith("no SHA-256 to compare with");

        fake.file(
                "/m/a.gguf.sha256",
                "f1e1d33bc5f74ee0cae7ac1ed0cd4b4bfd07eef6c1b0ee8f4e9fa5a8bc07dd1b  a.gguf\n");
        Finding damaged = ModelCheck.finding(fake.machine());
        assertThat(damaged.level()).isEqualTo(Level.FAIL);
        String actual = damaged.text().replaceFirst(".*, SHA-256 (\\w{64}), fetched.*", "$1");

        fake.file("/m/a.gguf.sha256", actual + "  a.gguf\n");
        assertThat(ModelCheck.finding(fake.machine()).text()).endsWith("SHA-256 as fetched");
    }

    @Test
    void aModelThatIsMissingOrNoGgufIsAFailure() throws Exception {
        FakeMachine fake = new FakeMachine(root);
        assertThat(ModelCheck.finding(fake.machine()).level()).isEqualTo(Level.FAIL);
        fake.variable("DORMOUSE_MODEL", "/m/a.gguf");
        assertThat(ModelCheck.finding(fake.machine()).text()).contains("cannot read");
        fake.file("/m/a.gguf", "GG");
        assertThat(ModelCheck.finding(fake.machine()).text()).endsWith("not a GGUF file");
    }

    @Test
    void aModelMayBeAFolder() throws Exception {
        FakeMachine fake = new FakeMachine(root).variable("DORMOUSE_MODEL", "/m");
        fake.file("/m/other.json", "{}");
        assertThat(ModelCheck.finding(fake.machine()).text()).endsWith("has no config.json");
        fake.file("/m/config.json", "{}");
        assertThat(ModelCheck.finding(fake.machine()).text()).contains("a folder");
    }

    @Test
    void theFetchedNixlHasUcxAndItsTransports() {
        Path directory = Natives.nixlDirectory();
        Machine machine =
                new Machine(
                        Path.of("/"),
                        Map.of("DORMOUSE_NIXL_DIR", directory.toString()),
                        Machine.local().commands());

        NixlLibraries nixl = NixlLibraries.find(machine);

        assertThat(nixl.findings()).extracting(Finding::level).containsOnly(Level.OK);
        assertThat(UcxTransports.finding(machine, nixl).text()).contains("tcp", "cma");
    }

    @Test
    void theFetchedModelIsSound() {
        Machine machine =
                new Machine(
                        Path.of("/"),
                        Map.of("DORMOUSE_MODEL", Natives.model().toString()),
                        command -> Optional.empty());

        assertThat(ModelCheck.finding(machine).level()).isEqualTo(Level.OK);
    }

    /** A machine with NIXL, whose UCX plugin finds all it needs. */
    private FakeMachine nixl() throws IOException {
        return new FakeMachine(root)
                .variable("DORMOUSE_NIXL_DIR", NIXL)
                .file(NIXL + "/libnixl_capi.so", "")
                .file(NIXL + "/plugins/libplugin_UCX.so", "")
                .answer("ldd " + NIXL + "/libnixl_capi.so", LIBC)
                .answer(
                        "ldd " + NIXL + "/plugins/libplugin_UCX.so",
                        LIBC,
                        "\tlibuct-1.so.0 => " + UCT + " (0x00007f1b48c64000)");
    }

    private static String module(String name) {
        return "/cache/nixl/nixl_cu12.libs/ucx/libuct_" + name + ".so.0.0.0";
    }

    private static Finding transports(FakeMachine fake) {
        return UcxTransports.finding(fake.machine(), NixlLibraries.find(fake.machine()));
    }

    private static Finding gpu(FakeMachine fake) {
        return GpuCheck.finding(fake.machine(), NixlLibraries.find(fake.machine()));
    }
}
