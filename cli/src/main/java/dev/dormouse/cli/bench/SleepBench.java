package dev.dormouse.cli.bench;

import dev.dormouse.cli.bench.cuda.DeviceKeepBench;
import dev.dormouse.cli.bench.cuda.DeviceSleepBench;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.Fleet;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.FleetOptions;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench sleep}: what many sleeps leave behind. */
@Command(
        name = "sleep",
        mixinStandardHelpOptions = true,
        description = {
            "Growth of both engines per cycle of sleep, wake and one hand-over.",
            "",
            "In each cycle the prefill engine sleeps and wakes, then a prompt goes through the router: a handshake, a read, a"
                    + " decode. Memory, mappings, descriptors and threads come from the system; each figure is the median slope between all"
                    + " pairs of samples, the warm-up left out. With 1000 cycles or more they are judged: at most 16 KiB per cycle, and nothing else."
        },
        exitCodeListHeading = "%nExit status:%n",
        exitCodeList = {
            "0:Measured; from 1000 cycles on: nothing grows.",
            "1:Something grows; the report says what."
        })
final class SleepBench implements Callable<Integer> {
    private static final int SAMPLES = 20;
    private static final int KV_CACHE_MIB = 64;
    private static final int TOKENS = 2;

    /** Below that the JVM compiles and its heap finds its size. */
    private static final int JUDGED_CYCLES = 1000;

    @Spec private CommandSpec spec;

    @Option(
            names = "--model",
            paramLabel = "PATH",
            description = "GGUF file, or folder of Hugging Face's (default: as `dormouse serve`).")
    private @Nullable Path model;

    @Option(
            names = "--cycles",
            paramLabel = "N",
            description = "Counted cycles, at least 20 (default: 200; of cuda none).")
    private @Nullable Integer chosenCycles;

    private int cycles;
    private List<String> excesses = List.of();

    @Option(names = "--both", description = "The decode engine sleeps as well, in every cycle.")
    private boolean both;

    @Option(
            names = "--transport",
            paramLabel = "TRANSPORT",
            defaultValue = "nixl",
            description =
                    "How KV goes from prefill to decode engine: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private FleetOptions.Transport transport = FleetOptions.Transport.NIXL;

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            defaultValue = "host",
            description =
                    "host: engines over a transport; cuda: the first GPU's memory, by size, or with --cycles many times 1 GiB (default: ${DEFAULT-VALUE}).")
    private Device device = Device.HOST;

    @Option(
            names = "--sizes-mib",
            paramLabel = "MIB",
            split = ",",
            defaultValue = "1024,8192,65536",
            description = "What sleeps on a GPU (default: ${DEFAULT-VALUE}).")
    private List<Integer> sizesMiB = List.of();

    @Option(names = "--json", paramLabel = "FILE", description = "Write the figures as JSON, too.")
    private @Nullable Path json;

    @Override
    public Integer call() throws IOException {
        cycles = chosenCycles == null ? 200 : chosenCycles;
        if (cycles < SAMPLES) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--cycles is " + cycles + ", but must be at least " + SAMPLES);
        }
        Map<String, Object> report = device == Device.CUDA ? cuda() : host();
        if (json != null) {
            Json.write(json, report);
        }
        return excesses.isEmpty() ? 0 : 1;
    }

    private Map<String, Object> cuda() {
        DeviceSleepBench bench = new DeviceSleepBench(new Progress(System.err));
        if (chosenCycles != null) {
            DeviceSleepBench.Cycles result = bench.cycles(cycles);
            DeviceSleepBench.print(result, spec.commandLine().getOut());
            return Map.of("device", "cuda", "cycles", result);
        }
        List<Long> bytes = sizesMiB.stream().map(size -> (long) size << 20).toList();
        List<DeviceSleepBench.Sleep> sleeps = bench.run(bytes);
        DeviceSleepBench.print(sleeps, spec.commandLine().getOut());
        List<DeviceKeepBench.Kept> kept = new DeviceKeepBench(new Progress(System.err)).run(bytes);
        DeviceKeepBench.print(kept, spec.commandLine().getOut());
        return Map.of("device", "cuda", "sleeps", sleeps, "kept_on_host", kept);
    }

    private Map<String, Object> host() throws IOException {
        Progress progress = new Progress(System.err);
        Path logs = Files.createTempDirectory("dormouse-bench");
        progress.say("starting prefill engine, decode engine and router; logs in " + logs);
        List<Growth> growth;
        try (Fleet fleet = Fleet.start(FleetOptions.of(model, KV_CACHE_MIB, transport), logs)) {
            growth = measure(fleet, progress);
        }
        if (cycles >= JUDGED_CYCLES) {
            excesses = growth.stream().flatMap(of -> of.excesses().stream()).toList();
        }
        print(growth);
        return Map.of(
                "device",
                "host",
                "transport",
                transport.toString(),
                "both",
                both,
                "cycles",
                cycles,
                "growth",
                growth,
                "excesses",
                excesses);
    }

    private List<Growth> measure(Fleet fleet, Progress progress) {
        List<EngineProcess> engines = List.of(fleet.prefill(), fleet.decode());
        List<EngineProcess> sleepers = both ? engines : List.of(fleet.prefill());
        List<List<Footprint>> samples = List.of(new ArrayList<>(), new ArrayList<>());
        int every = cycles / SAMPLES;
        int warmUp = Math.max(SAMPLES, cycles / 4);
        progress.say(warmUp + " cycles of warm-up");
        Counters before = fleet.decode().counters();
        for (int i = 0; i < warmUp + SAMPLES * every; i++) {
            cycle(sleepers, fleet.router(), i);
            if (i >= warmUp && (i - warmUp) % every == every - 1) {
                for (int k = 0; k < engines.size(); k++) {
                    samples.get(k).add(Footprint.ofProcess(engines.get(k).pid()));
                }
                progress.say((i - warmUp + 1) + " of " + SAMPLES * every + " cycles");
            }
        }
        requireReads(fleet.decode().counters().minus(before), warmUp + SAMPLES * every);
        List<Growth> growth = new ArrayList<>();
        for (int k = 0; k < engines.size(); k++) {
            growth.add(Growth.of(engines.get(k).name(), samples.get(k), every));
        }
        return growth;
    }

    /** Each cycle asks something else, so that no prefix cache answers. */
    private static void cycle(List<EngineProcess> sleepers, Endpoint router, int number) {
        sleepers.forEach(engine -> engine.sleep(1, "wait"));
        sleepers.forEach(EngineProcess::wake);
        router.complete("Cycle " + number + " of a long sleep: the dormouse said to its", TOKENS);
    }

    /** A bench of cycles in which nothing was read would measure nothing. */
    private static void requireReads(Counters seen, int cycles) {
        if (seen.reads() != cycles || seen.handshakes() != cycles) {
            throw new FleetException(
                    "%d cycles made %d reads and %d handshakes, expected as many of each"
                            .formatted(cycles, seen.reads(), seen.handshakes()));
        }
    }

    private void print(List<Growth> growth) {
        PrintWriter out = spec.commandLine().getOut();
        out.printf(
                "%-10s %13s %13s %13s %13s %13s%n",
                "engine", "PSS", "anonymous", "mappings", "descriptors", "threads");
        out.printf(
                "%-10s %13s %13s %13s %13s %13s%n",
                "", "KiB per cycle", "KiB per cycle", "per cycle", "per cycle", "per cycle");
        for (Growth of : growth) {
            out.printf(
                    Locale.ROOT,
                    "%-10s %13.2f %13.2f %13.3f %13.3f %13.3f%n",
                    of.engine(),
                    of.pssBytes() / 1024,
                    of.anonymousBytes() / 1024,
                    of.mappings(),
                    of.descriptors(),
                    of.threads());
        }
        excesses.forEach(out::println);
        out.flush();
    }
}
