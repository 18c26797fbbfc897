package dev.dormouse.cli.fleet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** More connections than a process may open descriptors. */
final class DescriptorLimitTest {
    private static final int DESCRIPTORS = 300;
    private static final String MODEL =
            Path.of("../model/src/test/resources/folders/qwen3").toAbsolutePath().toString();

    @TempDir Path logs;

    private ChildProcess start(int descriptors) {
        List<String> command = new ArrayList<>();
        command.addAll(List.of("bash", "-c", "ulimit -n " + descriptors + "; exec \"$0\" \"$@\""));
        command.addAll(
                TinyProcess.command(
                        List.of(
                                "serve",
                                "--port",
                                "0",
                                "--model",
                                MODEL,
                                "--kv-cache-memory",
                                "1MiB")));
        return ChildProcess.launch("engine", logs, Map.of(), command);
    }

    @Test
    void anEngineThatMayOpenTooFewSaysSoAndDoesNotStart() {
        try (ChildProcess process = start(160)) {
            assertThatThrownBy(process::awaitReady)
                    .hasMessageContaining("ended with status 1")
                    .hasMessageContaining("of 160 files that this process may open")
                    .hasMessageContaining("ulimit -n");
        }
    }

    @Test
    void anEngineServesOnAndSaysWhatItDoes() throws Exception {
        try (ChildProcess process = start(DESCRIPTORS)) {
            EngineProcess engine = new EngineProcess(process);
            List<Integer> expected = engine.endpoint().complete("The dormouse", 4).tokens();
            List<Socket> idle = new ArrayList<>();
            try {
                for (Endpoint listener : List.of(engine.endpoint(), engine.admin())) {
                    for (int i = 0; i < 2 * DESCRIPTORS; i++) {
                        idle.add(
                                new Socket(
                                        InetAddress.getLoopbackAddress(),
                                        listener.base().getPort()));
                    }
                }
                assertThat(engine.endpoint().complete("The dormouse", 4).tokens())
                        .isEqualTo(expected);
                assertThat(engine.admin().get("/is_sleeping")).contains("false");
                assertThat(descriptors(process)).isLessThan(DESCRIPTORS);
                assertThat(Files.readString(logs.resolve("engine.log")))
                        .contains("too many connections")
                        .doesNotContain("Too many open files")
                        .doesNotContain(" ERROR ");
            } finally {
                for (Socket socket : idle) {
                    socket.close();
                }
            }
            assertThat(engine.endpoint().complete("The dormouse", 4).tokens()).isEqualTo(expected);
        }
    }

    private static long descriptors(ChildProcess process) throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
            return open.count();
        }
    }
}
