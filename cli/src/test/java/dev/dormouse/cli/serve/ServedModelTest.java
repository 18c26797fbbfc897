package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.ModelException;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class ServedModelTest {
    @TempDir private Path folder;

    /** Its tokenizer is read while the transports start. */
    @Test
    void aModelWhoseTokenizerCannotBeReadLeavesNothingRunning() throws IOException {
        TinyModelFolder.write(folder);
        Files.writeString(folder.resolve("tokenizer.json"), "{}");

        assertThatThrownBy(() -> decodeEngine().start())
                .isInstanceOf(ModelException.class)
                .hasMessageContaining("tokenizer.json");
        Await.until("no thread of a transport or a model lives", () -> threads().isEmpty());
    }

    @Test
    void aModelThatIsInOrderHasTransportsAndThreads() {
        TinyModelFolder.write(folder);

        try (ServingEngine _ = decodeEngine().start()) {
            assertThat(threads()).contains("dormouse-local-io", "dormouse-compute-1");
        }
    }

    private ServeCommand decodeEngine() {
        return CommandLine.populateCommand(
                new ServeCommand(),
                "--model=" + folder,
                "--role=decode",
                "--kv-transport=local",
                "--threads=2",
                "--port=0",
                "--admin-port=0",
                "--side-channel-port=0",
                "--kv-cache-memory=32MiB",
                "--max-model-len=512");
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.matches("dormouse-(local-io|compute.*)"))
                .toList();
    }
}
