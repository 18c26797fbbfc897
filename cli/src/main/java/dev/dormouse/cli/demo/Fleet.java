package dev.dormouse.cli.demo;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The demonstration's processes: one prefill engine, one decode engine, and the router before them.
 */
final class Fleet implements AutoCloseable {
    private final List<ChildProcess> processes = new ArrayList<>();
    private final EngineUnderTest prefill;
    private final EngineUnderTest decode;
    private final Endpoint router;

    private Fleet(DemoOptions options, Path logs) {
        try {
            ChildProcess prefillProcess = start("prefill", logs, prefillArguments(options));
            ChildProcess decodeProcess = start("decode", logs, decodeArguments(options));
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
    static Fleet start(DemoOptions options, Path logs) {
        return new Fleet(options, logs);
    }

    /** An engine alone, which computes everything by itself and never sleeps. */
    static ChildProcess startOracle(DemoOptions options, Path logs) {
        return ChildProcess.start("oracle", logs, serve(options));
    }

    EngineUnderTest prefill() {
        return prefill;
    }

    EngineUnderTest decode() {
        return decode;
    }

    Endpoint router() {
        return router;
    }

    private ChildProcess start(String name, Path logs, List<String> arguments) {
        ChildProcess process = ChildProcess.start(name, logs, arguments);
        processes.add(process);
        return process;
    }

    private static EngineUnderTest engine(ChildProcess process) {
        return new EngineUnderTest(process, new Endpoint(process.name(), process.awaitReady()));
    }

    private static List<String> prefillArguments(DemoOptions options) {
        List<String> arguments = serve(options);
        arguments.addAll(
                List.of(
                        "--role",
                        "prefill",
                        "--side-channel-port",
                        "0",
                        "--enable-sleep-mode",
                        "--hold-requests-while-asleep"));
        return arguments;
    }

    /** Without a prefix cache, so that every prompt has to be read from the prefill engine. */
    private static List<String> decodeArguments(DemoOptions options) {
        List<String> arguments = serve(options);
        arguments.addAll(
                List.of(
                        "--role",
                        "decode",
                        "--side-channel-port",
                        "0",
                        "--enable-sleep-mode",
                        "--no-enable-prefix-caching"));
        return arguments;
    }

    private static List<String> serve(DemoOptions options) {
        return new ArrayList<>(
                List.of(
                        "serve",
                        "--port",
                        "0",
                        "--kv-cache-memory",
                        options.kvCacheMiB() + "MiB",
                        "--max-model-len",
                        "1024"));
    }

    @Override
    public void close() {
        processes.reversed().forEach(ChildProcess::close);
    }
}
