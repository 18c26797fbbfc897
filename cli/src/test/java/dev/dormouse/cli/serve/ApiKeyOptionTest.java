package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

final class ApiKeyOptionTest {
    private static List<String> keys(Map<String, String> environment, String... arguments) {
        ServeOptions options = new ServeOptions();
        CommandSpec spec = CommandSpec.create();
        spec.addMixin("options", CommandSpec.forAnnotatedObject(options));
        new CommandLine(spec).parseArgs(arguments);
        return options.apiKeys(environment);
    }

    @Test
    void keysComeFromTheOptionsElseFromTheEnvironment() {
        Map<String, String> both = Map.of("DORMOUSE_API_KEY", "d", "VLLM_API_KEY", "v");
        assertThat(keys(both, "--api-key", "a", "--api-key=b")).containsExactly("a", "b");
        assertThat(keys(both)).containsExactly("d");
        assertThat(keys(Map.of("VLLM_API_KEY", "v"))).containsExactly("v");
        assertThat(keys(Map.of("DORMOUSE_API_KEY", ""))).isEmpty();
        assertThat(keys(Map.of())).isEmpty();
    }
}
