package dev.dormouse.cli.bench;

import dev.dormouse.cli.fleet.Json;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelFiles;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench engine}: how fast the model computes, alone. */
@Command(
        name = "engine",
        mixinStandardHelpOptions = true,
        description = {
            "Tokens per second of prefill and decode: the median over some repetitions, after a warm-up.",
            "",
            "Beside them what bounds them: arithmetic of matrices and attention, and bytes of weights and KV that the steps must read,"
                    + " with their ratio to how fast the same threads just read the weights, measured in the same run."
        })
final class EngineBench implements Callable<Integer> {
    private static final int WARM_UPS = 2;
    private static final int[] PREFILLS = {128, 512};
    private static final int DECODE_STEPS = 64;
    private static final int DEPTH = 960;
    private static final int[] DECODE_SEQUENCES = {1, 8, 16};

    @Spec private CommandSpec spec;

    @Option(
            names = "--model",
            paramLabel = "PATH",
            defaultValue = "${env:DORMOUSE_MODEL}",
            description = "GGUF file, or folder of Hugging Face's.")
    private @Nullable Path model;

    @Option(names = "--threads", description = "Compute threads (default: one per processor).")
    private @Nullable Integer threads;

    @Option(
            names = {"--tensor-parallel-size", "-tp"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Ranks that share the model (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--repetitions",
            defaultValue = "5",
            description = "Counted runs (default: ${DEFAULT-VALUE}).")
    private int repetitions;

    @Option(names = "--json", paramLabel = "FILE", description = "Write the figures as JSON, too.")
    private @Nullable Path json;

    @Override
    public Integer call() throws IOException {
        if (model == null || repetitions < 1) {
            throw new ParameterException(
                    spec.commandLine(), "needs --model PATH, and --repetitions of at least 1");
        }
        int count = threads == null ? Runtime.getRuntime().availableProcessors() : threads;
        try (ModelFiles files = ModelFiles.open(model);
                LlamaModel llama = files.openModel(count, ranks);
                Arena arena = Arena.ofShared()) {
            List<MemorySegment> weights = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                weights.add(arena.allocate(llama.weightBytes(rank), 64));
                llama.loadWeights(rank, weights.getLast());
            }
            double memory = MemoryRate.gigabytesPerSecond(weights, count);
            printHead(llama, count, memory);
            List<EngineRate> rates = new ArrayList<>();
            for (int tokens : PREFILLS) {
                rates.add(prefill(llama, weights, tokens, memory));
            }
            for (int sequences : DECODE_SEQUENCES) {
                rates.add(decode(llama, weights, sequences, 0, memory));
            }
            rates.add(decode(llama, weights, 1, DEPTH, memory));
            if (json != null) {
                Json.write(json, report(llama, count, memory, rates));
            }
        }
        return 0;
    }

    private Map<String, Object> report(
            LlamaModel llama, int count, double memory, List<EngineRate> rates) {
        return Map.of(
                "model",
                llama.config().name(),
                "threads",
                count,
                "ranks",
                ranks,
                "repetitions",
                repetitions,
                "memory_read_gb_per_s",
                memory,
                "rates",
                rates);
    }

    private EngineRate prefill(
            LlamaModel llama, List<MemorySegment> weights, int tokens, double memory) {
        EngineWork work = EngineWork.prefill(llama.config(), bytes(weights), tokens);
        try (EngineLoad load = new EngineLoad(llama, weights, 1, tokens)) {
            return rate(work, () -> load.prefill(tokens), memory);
        }
    }

    private EngineRate decode(
            LlamaModel llama,
            List<MemorySegment> weights,
            int sequences,
            int depth,
            double memory) {
        EngineWork work =
                EngineWork.decode(
                        llama.config(),
                        bytes(weights),
                        sequences,
                        depth,
                        DECODE_STEPS,
                        EngineLoad.kvTokenBytes(llama));
        try (EngineLoad load = new EngineLoad(llama, weights, sequences, depth + DECODE_STEPS)) {
            load.prefill(depth);
            return rate(work, () -> load.decode(depth, DECODE_STEPS), memory);
        }
    }

    private static long bytes(List<MemorySegment> weights) {
        return weights.stream().mapToLong(MemorySegment::byteSize).sum();
    }

    private EngineRate rate(EngineWork work, Runnable run, double memory) {
        for (int i = 0; i < WARM_UPS; i++) {
            run.run();
        }
        double median =
                IntStream.range(0, repetitions)
                        .mapToDouble(_ -> seconds(run))
                        .sorted()
                        .toArray()[repetitions / 2];
        EngineRate rate = EngineRate.of(work, median, memory);
        print(rate);
        return rate;
    }

    private static double seconds(Runnable run) {
        long start = System.nanoTime();
        run.run();
        return (System.nanoTime() - start) / 1e9;
    }

    private void printHead(LlamaModel llama, int count, double memory) {
        PrintWriter out = spec.commandLine().getOut();
        out.printf(
                Locale.ROOT,
                "%s, %d %s, %d %s; the weights can be read at %.1f GB/s%n",
                llama.config().name(),
                count,
                count == 1 ? "thread" : "threads",
                ranks,
                ranks == 1 ? "rank" : "ranks",
                memory);
        out.printf("%-20s %9s %9s %9s %9s%n", "", "tokens/s", "GFLOP/s", "read GB/s", "ratio");
        out.flush();
    }

    private void print(EngineRate rate) {
        PrintWriter out = spec.commandLine().getOut();
        out.printf(
                Locale.ROOT,
                "%-20s %9.1f %9.1f %9.2f %9.2f%n",
                rate.workload(),
                rate.tokensPerSecond(),
                rate.gigaflopsPerSecond(),
                rate.readGigabytesPerSecond(),
                rate.readRatio());
        out.flush();
    }
}
