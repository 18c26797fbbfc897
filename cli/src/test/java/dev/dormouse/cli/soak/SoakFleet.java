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
    private final List<ChildProcess> started = new ArrayList<>();
    private final List<String> ofPrefill;
    private final List<String> ofDecode;
    private final ChildProcess routerProcess;
    private final Endpoint router;
    private ChildProcess prefillProcess;
    private ChildProcess decodeProcess;
    private EngineProcess prefill;
    private EngineProcess decode;

    /** The seed decides what the engines do with requests that meet a sleep. */
    SoakFleet(Path logs, RandomGenerator random) {
        this.logs = logs;
        ofPrefill = sleeper("prefill", random);
        ofDecode = sleeper("decode", random);
        if (random.nextBoolean()) {
            ofDecode.addAll(List.of("--kv-load-failure-policy", "recompute"));
        }
        if (random.nextBoolean()) {
            ofDecode.add("--no-enable-prefix-caching");
        }
        try {
            prefillProcess = start("prefill", ofPrefill, 0);
            decodeProcess = start("decode", ofDecode, 0);
            prefill = new EngineProcess(prefillProcess);
            decode = new EngineProcess(decodeProcess);
            List<String> route = new ArrayList<>(List.of("route"));
            route.addAll(List.of("--prefill", prefill.endpoint().base().toString()));
            route.addAll(List.of("--decode", decode.endpoint().base().toString()));
            routerProcess = start("router", route, 0);
            router = endpoint(routerProcess);
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    private static List<String> sleeper(String role, RandomGenerator random) {
        List<String> arguments = serve();
        arguments.addAll(List.of("--role", role, "--side-channel-port", "0"));
        arguments.addAll(List.of("--admin-port", "0"));
        arguments.addAll(List.of("--enable-sleep-mode", "--kv-lease-duration", "6"));
        if (random.nextBoolean()) {
            arguments.add("--hold-requests-while-asleep");
        }
        return arguments;
    }

    private static List<String> serve() {
        List<String> arguments = new ArrayList<>(List.of("serve", "--model", MODEL.toString()));
        arguments.addAll(List.of("--kv-cache-memory", "4MiB"));
        arguments.addAll(List.of("--max-num-seqs", "32", "--max-num-batched-tokens", "256"));
        return arguments;
    }

    private ChildProcess start(String name, List<String> options, int port) {
        List<String> arguments = new ArrayList<>(options);
        arguments.addAll(List.of("--port", Integer.toString(port)));
        ChildProcess process = ChildProcess.start(started.size() + "-" + name, logs, arguments);
        started.add(process);
        return process;
    }

    /** An engine alone, which never sleeps. */
    static ChildProcess startOracle(Path logs) {
        List<String> arguments = serve();
        arguments.addAll(List.of("--port", "0"));
        return ChildProcess.start("oracle", logs, arguments);
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

    Endpoint router() {
        return router;
    }

    ChildProcess prefillProcess() {
        return prefillProcess;
    }

    ChildProcess decodeProcess() {
        return decodeProcess;
    }

    /** Those that run. */
    List<ChildProcess> processes() {
        return List.of(prefillProcess, decodeProcess, routerProcess);
    }

    /** Starts the prefill engine again, which has ended, on its port. */
    void restartPrefill() {
        prefillProcess = start("prefill", ofPrefill, prefill.endpoint().base().getPort());
        prefill = new EngineProcess(prefillProcess);
    }

    /** Starts the decode engine again, which has ended, on its port. */
    void restartDecode() {
        decodeProcess = start("decode", ofDecode, decode.endpoint().base().getPort());
        decode = new EngineProcess(decodeProcess);
    }

    /** How the engines were started. */
    String options() {
        return String.join(" ", ofPrefill) + "\n" + String.join(" ", ofDecode);
    }

    @Override
    public void close() {
        started.reversed().forEach(ChildProcess::close);
    }
}
