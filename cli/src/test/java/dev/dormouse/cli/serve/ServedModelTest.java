package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.connector.ConnectorException;
import dev.dormouse.model.ModelException;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class ServedModelTest {
    @TempDir private Path folder;

    /** Its tokenizer is read while memory, weights and transports come. */
    @Test
    void aModelWhoseTokenizerCannotBeReadLeavesNothingRunning() throws IOException {
        TinyModelFolder.write(folder);
        Files.writeString(folder.resolve("tokenizer.json"), "{}");

        assertThatThrownBy(() -> decodeEngine().start())
                .isInstanceOf(ModelException.class)
                .hasMessageContaining("tokenizer.json");
        Await.until("no thread of a transport or a model lives", () -> threads().isEmpty());
    }

    /** Its connector is opened while memory and weights come. */
    @Test
    void anEngineWhoseSideChannelCannotListenLeavesNothingRunning() throws IOException {
        TinyModelFolder.write(folder);

        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = taken.getLocalPort();
            assertThatThrownBy(() -> decodeEngine("--side-channel-port=" + port).start())
                    .isInstanceOf(ConnectorException.class)
                    .hasMessageContaining("side channel: cannot listen on")
                    .hasMessageContaining(Integer.toString(port));
        }
        Await.until("no thread of a transport or a model lives", () -> threads().isEmpty());
    }

    /** Its transports start while it is refused. */
    @Test
    void anEngineThatLacksKvCacheMemoryLeavesNothingRunning() {
        TinyModelFolder.write(folder);

        assertThatThrownBy(() -> decodeEngine("--kv-cache-memory=1KiB").start())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("--kv-cache-memory");
        Await.until("no thread of a transport or a model lives", () -> threads().isEmpty());
    }

    @Test
    void aModelThatIsInOrderHasTransportsAndThreads() {
        TinyModelFolder.write(folder);

        try (ServingEngine _ = decodeEngine().start()) {
            assertThat(threads()).contains("dormouse-local-io", "dormouse-compute-1");
        }
    }

    /** With further options, each of which replaces the one that is here. */
    private ServeCommand decodeEngine(String... more) {
        Map<String, String> options = new LinkedHashMap<>();
        Stream.concat(
                        Stream.of(
                                "--model=" + folder,
                                "--role=decode",
                                "--kv-transport=local",
                                "--threads=2",
                                "--port=0",
                                "--admin-port=0",
                                "--side-channel-port=0",
                                "--kv-cache-memory=32MiB",
                                "--max-model-len=512"),
                        Stream.of(more))
                .forEach(option -> options.put(option.split("=", 2)[0], option));
        return CommandLine.populateCommand(
                new ServeCommand(), options.values().toArray(String[]::new));
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.matches("dormouse-(local-io|compute.*)"))
                .toList();
    }
}
