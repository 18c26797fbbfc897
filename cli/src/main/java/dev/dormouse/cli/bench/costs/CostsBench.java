package dev.dormouse.cli.bench.costs;

import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code dormouse bench costs}: what it costs to split engines, to sleep, to start and to wait. */
@Command(
        name = "costs",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "What it costs that prefill and decode are apart, that engines sleep, start and wait; with the targets.",
            "",
            "Engines are started for each part. Times are medians over rounds; docs/performance.md defines them."
        })
public final class CostsBench implements Callable<Integer> {
    /** What can be measured alone. */
    enum Chosen {
        /** What a hand-over adds to the first token. */
        handover,
        /** The throughput of two engines against what they do alone. */
        throughput,
        /** The first request after a wake; idle engines. */
        sleep,
        /** Starts, and memory. */
        start;

        Part part() {
            return switch (this) {
                case handover -> new HandOverCost();
                case throughput -> new ThroughputCost();
                case sleep -> new SleepCost();
                case start -> new StartCost();
            };
        }
    }

    @Spec private CommandSpec spec;

    @Option(
            names = "--parts",
            paramLabel = "PART",
            split = ",",
            defaultValue = "handover,throughput,sleep,start",
            description = "What to measure (default: ${DEFAULT-VALUE}).")
    private List<Chosen> parts = List.of();

    @Option(
            names = "--model",
            paramLabel = "PATH",
            description = "GGUF file, or folder of Hugging Face's (default: as `dormouse serve`).")
    private @Nullable Path model;

    @Option(names = "--json", paramLabel = "FILE", description = "Write the figures as JSON, too.")
    private @Nullable Path json;

    private final BenchFleet.Starter starter;
    private final Part.Amounts amounts;

    /** Made by picocli. */
    public CostsBench() {
        this(ChildProcess::start, Part.Amounts.USUAL);
    }

    /** With another way to start processes, and other amounts. */
    CostsBench(BenchFleet.Starter starter, Part.Amounts amounts) {
        this.starter = starter;
        this.amounts = amounts;
    }

    @Override
    public Integer call() throws IOException {
        Progress progress = new Progress(System.err);
        Path logs = Files.createTempDirectory("dormouse-bench");
        progress.say("logs are in " + logs);
        Bench bench = new Bench(new BenchFleet.Setting(starter, model, logs), amounts, progress);
        PrintWriter out = spec.commandLine().getOut();
        List<Figure> figures = new ArrayList<>();
        for (Chosen chosen : parts) {
            for (Figure figure : chosen.part().measure(bench)) {
                figures.add(figure);
                out.println(figure.line());
                out.flush();
            }
        }
        if (json != null) {
            Json.write(json, Map.of("figures", figures));
        }
        return 0;
    }
}
