package dev.dormouse.cli.bench.costs;

import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.bench.serve.LoadClient;
import dev.dormouse.cli.bench.serve.Percentiles;
import dev.dormouse.cli.bench.serve.Prompts;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.memory.MemoryUsage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The time from an engine's start until it serves, as launched (with the AOT cache, if this process
 * has it), and what it holds once it has answered requests, against weights and KV cache.
 */
final class StartCost implements Part {
    private static final String PART = "start";
    private static final int KV_CACHE_MIB = 512;
    private static final int REQUESTS = 16;
    private static final int CLIENTS = 8;
    private static final int PROMPT_TOKENS = 128;
    private static final int OUTPUT_TOKENS = 32;
    private static final double SECONDS_LIMIT = 2;
    private static final double MEMORY_LIMIT = 1.3;
    private static final double MIB = 1 << 20;

    @Override
    public List<Figure> measure(Bench bench) {
        int rounds = bench.amounts().rounds();
        List<Double> paired = new ArrayList<>();
        List<Double> alone = new ArrayList<>();
        for (int i = 0; i < rounds; i++) {
            bench.progress().say("start: round " + (i + 1) + " of " + rounds);
            long pairedNanos = System.nanoTime();
            try (BenchFleet _ = start(bench, "--role", "decode", "--side-channel-port", "0")) {
                paired.add(secondsSince(pairedNanos));
            }
            long aloneNanos = System.nanoTime();
            try (BenchFleet engine = start(bench)) {
                alone.add(secondsSince(aloneNanos));
                if (i == rounds - 1) {
                    List<Figure> figures = new ArrayList<>();
                    figures.add(serves("an engine alone serves after", alone));
                    figures.add(serves("a decode engine serves after", paired));
                    figures.addAll(memory(bench, engine));
                    return figures;
                }
            }
        }
        throw new IllegalArgumentException("start: rounds=" + rounds + ", expected at least 1");
    }

    private static BenchFleet start(Bench bench, String... more) {
        List<String> options = new ArrayList<>(List.of("--kv-cache-memory", KV_CACHE_MIB + "MiB"));
        options.addAll(List.of(more));
        return BenchFleet.single(bench.setting(), options.toArray(String[]::new));
    }

    private static double secondsSince(long startNanos) {
        return (System.nanoTime() - startNanos) / 1e9;
    }

    private static Figure serves(String name, List<Double> seconds) {
        return Figure.of(
                        PART,
                        name,
                        Percentiles.median(seconds.stream().mapToDouble(Double::doubleValue)),
                        "s")
                .atMost(SECONDS_LIMIT);
    }

    private static List<Figure> memory(Bench bench, BenchFleet engine) {
        bench.progress().say("start: memory after " + REQUESTS + " requests");
        try (LoadClient client = LoadClient.of(engine.base())) {
            Prompts prompts = Prompts.of(client, new SplittableRandom(1));
            var _ =
                    Bench.load(
                            client, prompts.next(REQUESTS, PROMPT_TOKENS), OUTPUT_TOKENS, CLIENTS);
            double held = MemoryUsage.ofProcess(engine.prefill().pid()).pssBytes() / MIB;
            double needed = weightBytes(bench.setting().model()) / MIB + KV_CACHE_MIB;
            return List.of(
                    Figure.of(PART, "weights, as their file has them, and KV cache", needed, "MiB"),
                    Figure.of(PART, "memory of the engine", held, "MiB"),
                    Figure.of(PART, "memory over weights and KV cache", held / needed, "")
                            .atMost(MEMORY_LIMIT));
        }
    }

    private static double weightBytes(@Nullable Path chosen) {
        Path model =
                chosen == null
                        ? Path.of(System.getenv().getOrDefault("DORMOUSE_MODEL", ""))
                        : chosen;
        try (Stream<Path> files = Files.walk(model)) {
            return files.filter(file -> file.toString().matches(".*\\.(gguf|safetensors)"))
                    .mapToLong(StartCost::size)
                    .sum();
        } catch (IOException | UncheckedIOException e) {
            throw new FleetException("cannot read the size of " + model + ": " + e.getMessage(), e);
        }
    }

    private static long size(Path file) {
        try {
            return Files.size(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
