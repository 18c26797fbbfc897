package dev.dormouse.cli.fleet;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Processes that serve together: a prefill engine, a decode engine, and the router before them. */
public final class Fleet implements AutoCloseable {
    private final List<ChildProcess> processes = new ArrayList<>();
    private final EngineProcess prefill;
    private final EngineProcess decode;
    private final Endpoint router;
    private final FleetOptions options;

    /** What each engine has in memory files as long as it maps nothing of the other. */
    private final Map<EngineProcess, Double> ownMiB;

    private Fleet(FleetOptions options, Path logs) {
        this.options = options;
        try {
            ChildProcess prefillProcess =
                    start("prefill", logs, faults(options), prefillArguments(options));
            ChildProcess decodeProcess =
                    start("decode", logs, faults(options), decodeArguments(options));
            prefill = new EngineProcess(prefillProcess);
            decode = new EngineProcess(decodeProcess);
            ownMiB = Map.of(prefill, prefill.fileMemoryMiB(), decode, decode.fileMemoryMiB());
            ChildProcess routerProcess =
                    start(
                            "router",
                            logs,
                            Map.of(),
                            List.of(
                                    "route",
                                    "--port",
                                    "0",
                                    "--shutdown-timeout",
                                    "0",
                                    "--prefill",
                                    prefill.endpoint().base().toString(),
                                    "--decode",
                                    decode.endpoint().base().toString()));
            router = new Endpoint("router", routerProcess.awaitReady());
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Starts all processes, and waits until they serve. */
    public static Fleet start(FleetOptions options, Path logs) {
        return new Fleet(options, logs);
    }

    /** An engine alone, which computes everything by itself and never sleeps. */
    public static ChildProcess startOracle(@Nullable Path model, int kvCacheMiB, Path logs) {
        return ChildProcess.start("oracle", logs, serve(model, kvCacheMiB));
    }

    public EngineProcess prefill() {
        return prefill;
    }

    public EngineProcess decode() {
        return decode;
    }

    public Endpoint router() {
        return router;
    }

    /** How many ranks of the decode engine shake hands. */
    public int decodeRanks() {
        return options.decodeRanks();
    }

    /** How many reads a prompt takes: every rank of the larger engine takes part in one. */
    public int readsPerPrompt() {
        return Math.max(options.prefillRanks(), options.decodeRanks());
    }

    /**
     * What some engines hold as the system counts it, with the pages that the other engine maps of
     * them, and without those that they map of it.
     */
    public double memoryMiB(List<EngineProcess> engines) {
        double sum = 0;
        for (Map.Entry<EngineProcess, Double> each : ownMiB.entrySet()) {
            EngineProcess engine = each.getKey();
            sum +=
                    engines.contains(engine)
                            ? engine.memoryMiB()
                            : engine.fileMemoryMiB() - each.getValue();
        }
        return sum;
    }

    private ChildProcess start(
            String name, Path logs, Map<String, String> environment, List<String> arguments) {
        ChildProcess process = ChildProcess.start(name, logs, environment, arguments);
        processes.add(process);
        return process;
    }

    private static Map<String, String> faults(FleetOptions options) {
        return options.revokes() ? Map.of() : Map.of("DORMOUSE_FAULT", "skip-reregister");
    }

    private static List<String> prefillArguments(FleetOptions options) {
        return sleeper(options, options.prefillRanks(), "prefill", "--hold-requests-while-asleep");
    }

    /** Without a prefix cache, so that every prompt has to be read from the prefill engine. */
    private static List<String> decodeArguments(FleetOptions options) {
        return sleeper(options, options.decodeRanks(), "decode", "--no-enable-prefix-caching");
    }

    private static List<String> sleeper(
            FleetOptions options, int ranks, String role, String option) {
        List<String> arguments = serve(options.model(), options.kvCacheMiB());
        arguments.addAll(List.of("--tensor-parallel-size", Integer.toString(ranks)));
        arguments.addAll(List.of("--kv-transport", options.transport().toString()));
        arguments.addAll(
                List.of("--role", role, "--side-channel-port", "0", "--enable-sleep-mode", option));
        return arguments;
    }

    private static List<String> serve(@Nullable Path model, int kvCacheMiB) {
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "serve",
                                "--port",
                                "0",
                                "--kv-cache-memory",
                                kvCacheMiB + "MiB",
                                "--shutdown-timeout",
                                "0",
                                "--max-model-len",
                                "1024"));
        if (model != null) {
            arguments.addAll(List.of("--model", model.toString()));
        }
        return arguments;
    }

    @Override
    public void close() {
        processes.reversed().forEach(ChildProcess::close);
    }
}
