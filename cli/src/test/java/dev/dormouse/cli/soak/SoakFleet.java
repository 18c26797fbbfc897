package dev.dormouse.cli.soak;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.EngineProcess;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * A prefill engine, a decode engine and a router as processes, with a tiny model, so that a request
 * takes milliseconds, and with fewer blocks than the requests would like.
 */
final class SoakFleet implements AutoCloseable {
    private static final Path MODEL =
            Path.of("../model/src/test/resources/folders/qwen3").toAbsolutePath().normalize();

    private final Path logs;
    private final List<ChildProcess> processes = new ArrayList<>();
    private final List<String> options;
    private final EngineProcess prefill;
    private final EngineProcess decode;
    private final ChildProcess router;
    private final int routerPort;

    /** The seed decides what the engines do with requests that meet a sleep. */
    SoakFleet(Path logs, RandomGenerator random) {
        this.logs = logs;
        List<String> ofPrefill = new ArrayList<>(sleeper("prefill", random));
        List<String> ofDecode = new ArrayList<>(sleeper("decode", random));
        if (random.nextBoolean()) {
            ofDecode.addAll(List.of("--kv-load-failure-policy", "recompute"));
        }
        if (random.nextBoolean()) {
            ofDecode.addAll(List.of("--tensor-parallel-size", "2"));
        }
        if (random.nextBoolean()) {
            ofDecode.add("--no-enable-prefix-caching");
        }
        this.options = List.of(String.join(" ", ofPrefill), String.join(" ", ofDecode));
        try {
            ChildProcess prefillProcess = start("prefill", ofPrefill);
            ChildProcess decodeProcess = start("decode", ofDecode);
            prefill = new EngineProcess(prefillProcess);
            decode = new EngineProcess(decodeProcess);
            List<String> route = new ArrayList<>(List.of("route", "--port", "0"));
            route.addAll(List.of("--prefill", prefill.endpoint().base().toString()));
            route.addAll(List.of("--decode", decode.endpoint().base().toString()));
            router = start("router", route);
            routerPort = router.awaitReady().getPort();
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    private static List<String> sleeper(String role, RandomGenerator random) {
        List<String> arguments = serve();
        arguments.addAll(List.of("--role", role, "--side-channel-port", "0"));
        arguments.addAll(List.of("--enable-sleep-mode", "--kv-lease-duration", "6"));
        if (random.nextBoolean()) {
            arguments.add("--hold-requests-while-asleep");
        }
        return arguments;
    }

    private static List<String> serve() {
        return new ArrayList<>(
                List.of(
                        "serve",
                        "--port",
                        "0",
                        "--model",
                        MODEL.toString(),
                        "--kv-cache-memory",
                        "4MiB",
                        "--max-num-seqs",
                        "32",
                        "--max-num-batched-tokens",
                        "256"));
    }

    private ChildProcess start(String name, List<String> arguments) {
        ChildProcess process = ChildProcess.start(name, logs, arguments);
        processes.add(process);
        return process;
    }

    /** An engine alone, which never sleeps. */
    static ChildProcess startOracle(Path logs) {
        return ChildProcess.start("oracle", logs, serve());
    }

    static Endpoint endpoint(ChildProcess process) {
        return new Endpoint(process.name(), process.awaitReady());
    }

    EngineProcess prefill() {
        return prefill;
    }

    EngineProcess decode() {
        return decode;
    }

    int routerPort() {
        return routerPort;
    }

    List<ChildProcess> processes() {
        return processes;
    }

    /** How the engines were started. */
    List<String> options() {
        return options;
    }

    @Override
    public void close() {
        processes.reversed().forEach(ChildProcess::close);
    }
}
