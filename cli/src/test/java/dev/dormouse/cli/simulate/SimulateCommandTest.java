package dev.dormouse.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

final class SimulateCommandTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int simulate(String... arguments) {
        return new CommandLine(new SimulateCommand())
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(arguments);
    }

    @Test
    void severalSeedsAreSummedUp() {
        assertThat(simulate("--seeds", "3")).isZero();
        assertThat(out.toString())
                .contains("answered as by an engine that never slept")
                .contains("3 seeds in")
                .contains(" 0 failed");
    }

    @Test
    void oneSeedAlwaysLivesTheSameLife() {
        assertThat(simulate("--seed", "7")).isZero();
        String once = out.toString();
        assertThat(once).contains("seed 7: ").contains("1 seeds in");
        out.getBuffer().setLength(0);
        assertThat(simulate("--seed", "7")).isZero();
        assertThat(out.toString().lines().findFirst()).isEqualTo(once.lines().findFirst());
    }

    @Test
    void noSeedsAreMisuse() {
        assertThat(simulate("--seeds", "0")).isEqualTo(2);
        assertThat(err.toString()).contains("--seeds is 0, but must be at least 1");
    }
}
