package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** What the launcher lets the JVM watch for its AOT cache. */
final class RehearsalTest {
    @Test
    void rehearsesBothEnginesTheRouterAndSleepInThisProcess() {
        Natives.nixlDirectory();
        Natives.model();
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command =
                Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));

        int status = command.execute("rehearse");

        assertThat(err.toString()).isEmpty();
        assertThat(status).isZero();
        assertThat(out.toString())
                .containsPattern("(?m)^rehearsal +1 +4/4 ")
                .contains("\"remote_reads\" : 2", "\"failed_transfers\" : 0")
                .doesNotContain("WRONG");
    }

    @Test
    void theHelpDoesNotSpeakOfIt() {
        assertThat(Main.commandLine().getUsageMessage()).doesNotContain("rehearse");
    }
}
