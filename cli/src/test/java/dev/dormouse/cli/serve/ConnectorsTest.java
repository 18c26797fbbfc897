package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.model.KvType;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.testkit.Natives;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** Connectors over the real library. */
final class ConnectorsTest {
    private static final ModelConfig MODEL =
            new ModelConfig("m", "llama", 32, 32, 2, 2, 2, 16, 32, 64, 16, 1e4f, 1e-5f, List.of());

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_consumer\"}",
                """
                {"kv_connector": "MultiConnector", "kv_role": "kv_consumer",
                 "kv_connector_extra_config": {"connectors": [
                   {"kv_connector": "NixlConnector"}, {"kv_connector": "NixlPushConnector"}]}}
                """
            })
    void sleepModeSaysOnceWhatItTellsUcx(String json) {
        assertThat(linesOf(json, true))
                .filteredOn(line -> line.contains("sleep mode tells UCX"))
                .singleElement()
                .asString()
                .containsAnyOf("RCACHE_ENABLE=n", "TLS=^cuda_ipc", "all is set by the user");
    }

    @Test
    void withoutSleepModeUcxIsToldNothing() {
        assertThat(
                        linesOf(
                                "{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}",
                                false))
                .noneMatch(line -> line.contains("UCX"));
    }

    private static List<String> linesOf(String json, boolean sleepMode) {
        Natives.nixlDirectory();
        Logger logger = (Logger) LoggerFactory.getLogger("dormouse.cli");
        ListAppender<ILoggingEvent> appender = new ListAppender<>();
        appender.start();
        Level before = logger.getLevel(); // other tests of this JVM set up the command's own log
        logger.setLevel(Level.INFO);
        logger.addAppender(appender);
        try {
            ConnectorHalves halves =
                    Connectors.open(settings(json), MODEL, 2, engine(sleepMode), new MemoryFiles());
            assertThat(halves.workers()).as("one per rank").hasSize(2);
            halves.workers().forEach(WorkerConnector::close);
            halves.scheduler().close();
        } finally {
            logger.detachAppender(appender);
            logger.setLevel(before);
        }
        return appender.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
    }

    private static EngineConfig engine(boolean sleepMode) {
        return new EngineConfig(
                "m", 1 << 20, 16, KvType.F16, 64, 4, 64, 10, true, sleepMode, false, true, false);
    }

    private static KvSettings settings(String json) {
        ServeOptions options = new ServeOptions();
        CommandSpec spec = CommandSpec.create();
        spec.addMixin("options", CommandSpec.forAnnotatedObject(options));
        new CommandLine(spec).parseArgs("--kv-transfer-config=" + json, "--side-channel-port=0");
        return KvSettings.of(options);
    }
}
