package dev.dormouse.cli.doctor;

import dev.dormouse.cli.doctor.Finding.Level;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code dormouse doctor}. Exits with 1 when something is missing that Dormouse needs. */
@Command(
        name = "doctor",
        description = {
            "Print what Dormouse found on this machine, and what is wrong.",
            "The exit status is 1 when something that it needs is missing."
        },
        mixinStandardHelpOptions = true)
public final class Doctor implements Callable<Integer> {
    @Spec private CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        int status = report(examine(Machine.local()), out);
        out.flush();
        return status;
    }

    private static List<Finding> examine(Machine machine) {
        JdkCheck jdk = JdkCheck.ofThisJvm();
        NixlLibraries nixl = NixlLibraries.find(machine);
        List<Finding> findings = new ArrayList<>();
        findings.add(jdk.finding());
        findings.addAll(nixl.findings());
        findings.add(UcxTransports.finding(machine, nixl));
        findings.add(SameHostCheck.finding());
        findings.add(ModelCheck.finding(machine));
        findings.add(CpuCheck.finding(machine, jdk.hasVectorModule()));
        findings.addAll(MemoryCheck.findings(machine));
        findings.add(GpuCheck.finding(machine, nixl));
        return findings;
    }

    /** Prints the findings and a last line that sums them up, and returns the exit status. */
    static int report(List<Finding> findings, PrintWriter out) {
        findings.forEach(finding -> out.println(finding.format()));
        long failures = count(findings, Level.FAIL);
        long warnings = count(findings, Level.WARN);
        out.println();
        if (failures > 0) {
            out.println("Not ready: " + failures + " missing, " + warnings + " to improve.");
            return 1;
        }
        out.println(warnings == 0 ? "Ready." : "Ready, with " + warnings + " to improve.");
        return 0;
    }

    private static long count(List<Finding> findings, Level level) {
        return findings.stream().filter(finding -> finding.level() == level).count();
    }
}
