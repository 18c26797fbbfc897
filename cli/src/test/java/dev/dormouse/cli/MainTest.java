package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** The command line as a whole. */
final class MainTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private final CommandLine command =
            Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));

    @Test
    void versionNamesProjectAndJava() {
        assertThat(command.execute("version")).isZero();
        assertThat(out.toString()).matches("dormouse \\d+\\.\\d+\\.\\d+\\S*, Java 25.*\\R");
    }

    @Test
    void helpNamesEveryCommandAndThoseOfTheLauncher() {
        assertThat(command.execute("--help")).isZero();
        assertThat(out.toString()).contains("doctor", "version", "help", "test", "env");
    }

    @Test
    void noCommandIsMisuse() {
        assertThat(command.execute()).isEqualTo(2);
        assertThat(err.toString()).contains("which command?", "Usage: dormouse");
    }

    @Test
    void aFailureOfASubcommandIsOneLineAndStatusOne() throws Exception {
        CommandLine version = Objects.requireNonNull(command.getSubcommands().get("version"));

        int status =
                version.getExecutionExceptionHandler()
                        .handleExecutionException(
                                new IllegalStateException("port 7 is taken: set --port"),
                                version,
                                command.parseArgs("version"));

        assertThat(status).isEqualTo(1);
        assertThat(err.toString().lines()).containsExactly("dormouse: port 7 is taken: set --port");
    }
}
