package dev.dormouse.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The doctor's report and its exit status. */
final class DoctorTest {
    private static final Finding GOOD = Finding.ok("JDK", "25.0.3");
    private static final Finding POOR = Finding.warn("CPU", "no AVX2", "another one");
    private static final Finding BAD = Finding.fail("model", "not found", "fetch it");

    private final StringWriter out = new StringWriter();

    @Test
    void eachFindingIsALineAndEachRemedyOne() {
        report(GOOD, POOR);

        assertThat(out.toString().lines())
                .containsExactly(
                        "ok    JDK            25.0.3",
                        "warn  CPU            no AVX2",
                        "                     -> another one",
                        "",
                        "Ready, with 1 to improve.");
    }

    @Test
    void onlyFailuresMakeItFail() {
        assertThat(report(GOOD)).isZero();
        assertThat(out.toString().lines()).last().isEqualTo("Ready.");
        assertThat(report(GOOD, POOR)).isZero();
        assertThat(report(GOOD, BAD, POOR)).isEqualTo(1);
        assertThat(out.toString().lines()).last().isEqualTo("Not ready: 1 missing, 1 to improve.");
    }

    private int report(Finding... findings) {
        return Doctor.report(List.of(findings), new PrintWriter(out, true));
    }
}
