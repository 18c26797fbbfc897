package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.LauncherSandbox.Run;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The benchmarks that are not the command's: JMH's, and those beside other products. */
final class LauncherBenchTest extends LauncherFixture {
    @Test
    void jmhHasABuildOfItsOwnAndGetsItsOptions() throws Exception {
        Run run = sandbox.run("bench", "jmh", "-f", "1", "Sampler");

        assertThat(run.status()).isZero();
        String app = sandbox.checkout() + "/benchmarks/target/app-";
        assertThat(run.out())
                .contains("--add-modules=jdk.incubator.vector")
                .endsWith("org.openjdk.jmh.Main", "-f", "1", "Sampler");
        assertThat(run.out()).anyMatch(argument -> argument.startsWith(app));
        assertThat(sandbox.lines("maven.calls"))
                .singleElement()
                .asString()
                .contains("-pl benchmarks -am");
    }

    @Test
    void otherBenchesAreTheCommands() throws Exception {
        assertThat(sandbox.run("bench", "engine").out())
                .endsWith("dev.dormouse.cli.Main", "bench", "engine");
    }

    @Test
    void peersAreInstalledOnceAndGetTheLauncherAndTheirOptions() throws Exception {
        python("");

        assertThat(sandbox.run("bench", "peers", "llama", "--rounds", "2").status()).isZero();
        assertThat(sandbox.run("bench", "peers", "llama").status()).isZero();

        List<String> calls = sandbox.lines("python.calls");
        String script = sandbox.checkout() + "/benchmarks/peers/llama.py --launcher ";
        assertThat(calls).hasSize(3);
        assertThat(calls.get(0)).contains("pip", "--no-binary llama-cpp-python llama-cpp-python==");
        assertThat(calls.get(1)).endsWith(script + sandbox.checkout() + "/dormouse --rounds 2");
        assertThat(calls.get(2)).endsWith(script + sandbox.checkout() + "/dormouse");
    }

    @Test
    void llamaIsBuiltForThisProcessorButForItsTiles() throws Exception {
        python("");

        sandbox.run("bench", "peers", "llama");

        assertThat(sandbox.lines("cmake.args"))
                .first()
                .asString()
                .startsWith("-DGGML_NATIVE=OFF ")
                .contains("-DGGML_SSE42=ON ", "-DGGML_AVX512=")
                .doesNotContain("AMX");
    }

    @Test
    void aPeerThatCannotBeInstalledIsSaidAndTriedAgain() throws Exception {
        python("echo 'ERROR: no cmake'; exit 1");

        Run run = sandbox.run("bench", "peers", "nixl");

        assertThat(run.status()).isEqualTo(1);
        assertThat(run.err()).last().asString().contains("no Python packages (ERROR: no cmake)");
        sandbox.run("bench", "peers", "nixl");
        assertThat(sandbox.lines("python.calls")).hasSize(2);
    }

    @Test
    void unknownPeersAreRefused() throws Exception {
        Run run = sandbox.run("bench", "peers", "vllm");

        assertThat(run.status()).isEqualTo(2);
        assertThat(run.err())
                .containsExactly(
                        "dormouse: bench peers: 'vllm' is no peer, these are: llama, nixl");
    }

    /** A python3 whose environments' pip is the given script. */
    private void python(String pip) throws Exception {
        sandbox.script(
                "environment",
                "echo \"$*\" >> @/python.calls; echo \"${CMAKE_ARGS:-}\" >> @/cmake.args\n"
                        + "[[ $* == *pip* ]] || exit 0\n"
                        + pip);
        sandbox.script("bin/python3", "mkdir -p \"$3/bin\" && cp @/environment \"$3/bin/python\"");
    }
}
