package dev.dormouse.cli.simulate;

import dev.dormouse.cli.log.LogSetUp;
import dev.dormouse.simulation.Simulation;
import dev.dormouse.simulation.SimulationFailure;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse simulate}. */
@Command(
        name = "simulate",
        mixinStandardHelpOptions = true,
        description = {
            "Lives through clusters of engines with faults and sleeps, and checks every answer.",
            "",
            "Each seed is one cluster under one scheduler and virtual time: the code that serves, over memory that notices a"
                    + " read of old pages. The same seed always lives the same life. A broken rule is told with the events before"
                    + " it, and ends the command with status 1."
        })
public final class SimulateCommand implements Callable<Integer> {
    private static final int DEFAULT_SEEDS = 500;
    private static final int MAX_FAILURES = 5;
    private static final long PROGRESS_NANOS = TimeUnit.SECONDS.toNanos(5);

    @Spec private CommandSpec spec;

    @Option(
            names = "--seeds",
            paramLabel = "N",
            description =
                    "How many seeds (default: "
                            + DEFAULT_SEEDS
                            + ", or the one that --seed names).")
    private @Nullable Integer seeds;

    @Option(
            names = "--seed",
            paramLabel = "S",
            description = "The first seed (default: 1). Alone, it repeats one life.")
    private @Nullable Long first;

    /** Made by picocli. */
    public SimulateCommand() {}

    @Override
    public Integer call() {
        long start = first == null ? 1 : first;
        int count = seeds == null ? (first == null ? DEFAULT_SEEDS : 1) : seeds;
        if (count < 1) {
            throw new ParameterException(
                    spec.commandLine(), "--seeds is " + count + ", but must be at least 1");
        }
        LogSetUp.silence(); // what the engines say of faults is no news here
        return run(start, count, spec.commandLine().getOut());
    }

    private static int run(long start, int count, PrintWriter out) {
        Simulation.Coverage all = Simulation.Coverage.NONE;
        int failures = 0;
        int done = 0;
        long startNanos = System.nanoTime();
        long toldNanos = startNanos;
        while (done < count && failures < MAX_FAILURES) {
            try {
                Simulation.Report report = Simulation.run(start + done);
                all = all.plus(report.coverage());
                if (count == 1) {
                    out.printf(
                            Locale.ROOT,
                            "seed %d: %d events, hash %016x%n",
                            report.seed(),
                            report.events(),
                            report.hash());
                }
            } catch (SimulationFailure e) {
                failures++;
                out.println(e.getMessage());
                out.println();
            }
            done++;
            if (System.nanoTime() - toldNanos >= PROGRESS_NANOS) {
                toldNanos = System.nanoTime();
                out.printf("%d of %d seeds, %d failed%n", done, count, failures);
            }
            out.flush();
        }
        double seconds = (System.nanoTime() - startNanos) / 1e9;
        tell(out, all);
        out.printf(Locale.ROOT, "%d seeds in %.1f s, %d failed%n", done, seconds, failures);
        out.flush();
        return failures == 0 ? 0 : 1;
    }

    private static void tell(PrintWriter out, Simulation.Coverage all) {
        out.printf(
                "requests: %d answered as by an engine that never slept, %d refused with a reason%n",
                all.answered(), all.refused());
        out.printf(
                "remote KV: %d prompt tokens read, %d of them for next turns, %d reads failed or refused, %d holds ran out, %d were taken back, %d mappings were taken back%n",
                all.remoteTokens(),
                all.turnTokens(),
                all.failedReads(),
                all.expiredHolds(),
                all.revokedHolds(),
                all.revokedMappings());
        out.printf(
                "handshakes: %d succeeded, %d failed%n", all.handshakes(), all.failedHandshakes());
        out.printf(
                "engines: %d transitions, %d deaths, %d preemptions, %d prompt tokens found in prefix caches%n",
                all.transitions(), all.deaths(), all.preemptions(), all.prefixHits());
    }
}
