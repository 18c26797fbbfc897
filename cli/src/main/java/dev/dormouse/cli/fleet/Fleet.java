package dev.dormouse.cli.fleet;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Processes that serve together: a prefill engine, a decode engine, and the router before them. */
public final class Fleet implements AutoCloseable {
    private final List<ChildProcess> processes = new ArrayList<>();
    private final EngineProcess prefill;
    private final EngineProcess decode;
    private final Endpoint router;
    private final int prefillRanks;
    private final int decodeRanks;

    private Fleet(
            @Nullable Path model, int kvCacheMiB, int prefillRanks, int decodeRanks, Path logs) {
        this.prefillRanks = prefillRanks;
        this.decodeRanks = decodeRanks;
        try {
            ChildProcess prefillProcess =
                    start("prefill", logs, prefillArguments(model, kvCacheMiB, prefillRanks));
            ChildProcess decodeProcess =
                    start("decode", logs, decodeArguments(model, kvCacheMiB, decodeRanks));
            prefill = engine(prefillProcess);
            decode = engine(decodeProcess);
            ChildProcess routerProcess =
                    start(
                            "router",
                            logs,
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

    /**
     * Starts all processes, and waits until they serve.
     *
     * @param model what they serve; null for the default
     * @param prefillRanks tensor parallel size of the prefill engine
     * @param decodeRanks tensor parallel size of the decode engine
     */
    public static Fleet start(
            @Nullable Path model, int kvCacheMiB, int prefillRanks, int decodeRanks, Path logs) {
        return new Fleet(model, kvCacheMiB, prefillRanks, decodeRanks, logs);
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
        return decodeRanks;
    }

    /** How many reads a prompt takes: every rank of the larger engine takes part in one. */
    public int readsPerPrompt() {
        return Math.max(prefillRanks, decodeRanks);
    }

    private ChildProcess start(String name, Path logs, List<String> arguments) {
        ChildProcess process = ChildProcess.start(name, logs, arguments);
        processes.add(process);
        return process;
    }

    private static EngineProcess engine(ChildProcess process) {
        return new EngineProcess(process);
    }

    private static List<String> prefillArguments(@Nullable Path model, int kvCacheMiB, int ranks) {
        return sleeper(model, kvCacheMiB, ranks, "prefill", "--hold-requests-while-asleep");
    }

    /** Without a prefix cache, so that every prompt has to be read from the prefill engine. */
    private static List<String> decodeArguments(@Nullable Path model, int kvCacheMiB, int ranks) {
        return sleeper(model, kvCacheMiB, ranks, "decode", "--no-enable-prefix-caching");
    }

    private static List<String> sleeper(
            @Nullable Path model, int kvCacheMiB, int ranks, String role, String option) {
        List<String> arguments = serve(model, kvCacheMiB);
        arguments.addAll(List.of("--tensor-parallel-size", Integer.toString(ranks)));
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
