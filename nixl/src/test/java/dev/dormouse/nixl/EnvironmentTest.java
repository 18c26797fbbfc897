package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What NIXL finds in the process, and what it leaves there. */
class EnvironmentTest {
    @Test
    void defaultsYieldToTheUser() {
        Natives.nixlDirectory();
        try (PeerProcess plain = PeerProcess.start("plain");
                PeerProcess set = PeerProcess.start("set", Map.of("UCX_RCACHE_ENABLE", "y"))) {
            assertThat(plain.greeting())
                    .contains("name=UCX_RCACHE_ENABLE, value=n")
                    .contains("name=UCX_LOG_LEVEL, value=error");
            assertThat(set.greeting())
                    .doesNotContain("UCX_RCACHE_ENABLE")
                    .contains("name=UCX_LOG_LEVEL, value=error");
        }
    }

    @Test
    void defaultsComeBeforeTheLibrary() {
        Natives.nixlDirectory();
        NixlAgent.create(NixlAgentConfig.builder("early").build()).close();

        assertThat(UcxEnvironment.applied())
                .contains(
                        new UcxEnvironment.Setting("UCX_ERROR_SIGNALS", ""),
                        new UcxEnvironment.Setting("UCX_RCACHE_MAX_UNRELEASED", "1024"));
        assertThatThrownBy(() -> UcxEnvironment.applyDefaults(List.of()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("NIXL is loaded already");
        assertThatThrownBy(() -> new UcxEnvironment.Setting("PATH", "/"))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void theJvmKeepsItsSignalHandlers() {
        Natives.nixlDirectory();
        SignalHandlers before = SignalHandlers.current();
        try (NixlAgent agent = NixlAgent.create(NixlAgentConfig.builder("signals").build())) {
            agent.createBackend("UCX", Map.of());

            assertThat(SignalHandlers.current()).isEqualTo(before);
            assertThatThrownBy(() -> lengthOf(null)).isInstanceOf(NullPointerException.class);
        }
        assertThatThrownBy(
                        () ->
                                new SignalHandlers(
                                                Map.of("SIGBUS", 1L, "SIGFPE", 1L, "SIGSEGV", 1L))
                                        .requireUnchanged("signals", "UCX"))
                .isInstanceOf(NixlException.class)
                .hasMessageContaining(
                        "UCX replaced the JVM's handlers of [SIGBUS, SIGFPE, SIGSEGV]");
    }

    @Test
    void aMissingLibraryIsToldWithTheRemedy(@TempDir Path empty)
            throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(
                                PeerProcess.java(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-Ddormouse.nixl.dir=" + empty,
                                "-cp",
                                System.getProperty("java.class.path"),
                                PeerMain.class.getName(),
                                "nobody")
                        .redirectErrorStream(true)
                        .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();

        assertThat(process.exitValue()).isEqualTo(1);
        assertThat(output)
                .contains(NativeLibraryException.class.getName())
                .contains("load NIXL failed: libnixl_capi.so: no file " + empty)
                .contains("property dormouse.nixl.dir")
                .contains("run `./dormouse doctor`");
    }

    @SuppressWarnings("NullAway") // the fault is the point
    private static int lengthOf(@Nullable String text) {
        return text.length();
    }
}
