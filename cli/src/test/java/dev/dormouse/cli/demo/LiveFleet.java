package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.MetricSums;
import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A prefill engine, a decode engine and a router as processes, the engines with ports that stay
 * when they are killed and started again.
 *
 * <p>The prefill engine takes longer prompts than the decode engine, and computes them in many
 * steps.
 */
final class LiveFleet implements AutoCloseable {
    /** Only bounds a failing test. */
    static final Duration LIMIT = Duration.ofMinutes(2);

    private final Path logs;
    private final List<String> ofEngines;
    private final List<ChildProcess> processes = new ArrayList<>();
    private final Endpoint prefill;
    private final Endpoint decode;
    private final Endpoint router;
    private final int prefillSideChannelPort;
    private ChildProcess prefillProcess;
    private ChildProcess decodeProcess;

    /**
     * Starts it.
     *
     * @param ofEngines further options of both engines; a {@code --model} is a tiny one
     */
    LiveFleet(Path logs, String... ofEngines) {
        this(logs, List.of(), List.of(ofEngines));
    }

    /** As above, with further options of the router, too. */
    LiveFleet(Path logs, List<String> ofRouter, List<String> ofEngines) {
        this.logs = logs;
        this.ofEngines = List.copyOf(ofEngines);
        try {
            prefillProcess = startPrefill(0, 0);
            decodeProcess = startDecode(0);
            prefill = new Endpoint("prefill", prefillProcess.awaitReady());
            decode = new Endpoint("decode", decodeProcess.awaitReady());
            List<String> route = new ArrayList<>(List.of("route", "--port", "0"));
            route.addAll(List.of("--prefill", prefill.base().toString()));
            route.addAll(List.of("--decode", decode.base().toString()));
            route.addAll(ofRouter);
            router = new Endpoint("router", launch(route.toArray(String[]::new)).awaitReady());
            prefillSideChannelPort = prefill.prefill("x").path("remote_port").asInt();
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    Endpoint prefill() {
        return prefill;
    }

    Endpoint decode() {
        return decode;
    }

    /** Where the prefill engine is put to sleep and woken. */
    Endpoint prefillAdmin() {
        return new Endpoint("prefill", prefillProcess.admin());
    }

    /** Where the decode engine is put to sleep and woken. */
    Endpoint decodeAdmin() {
        return new Endpoint("decode", decodeProcess.admin());
    }

    Endpoint router() {
        return router;
    }

    int prefillSideChannelPort() {
        return prefillSideChannelPort;
    }

    /** The prefill engine's process. */
    long prefillPid() {
        return prefillProcess.pid();
    }

    /** The decode engine's process. */
    long decodePid() {
        return decodeProcess.pid();
    }

    /** Kills the prefill engine without a warning. */
    void killPrefill() {
        prefillProcess.kill();
    }

    /** Kills the decode engine without a warning. */
    void killDecode() {
        decodeProcess.kill();
    }

    /** Sends a signal that {@link Process} does not know. */
    static void signal(String which, long pid) {
        try {
            int status =
                    new ProcessBuilder("kill", "-" + which, Long.toString(pid))
                            .inheritIO()
                            .start()
                            .waitFor();
            if (status != 0) {
                throw new AssertionError("kill -" + which + " ended with " + status);
            }
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Starts the killed prefill engine again, with the ports and the name that it had. */
    void restartPrefill() {
        prefillProcess = startPrefill(prefill.base().getPort(), prefillSideChannelPort);
        awaitServing(prefillProcess);
    }

    /** Starts the killed decode engine again, with the port that it had. */
    void restartDecode() {
        decodeProcess = startDecode(decode.base().getPort());
        awaitServing(decodeProcess);
    }

    private void awaitServing(ChildProcess process) {
        process.awaitReady();
        Await.until(
                "the router serves again",
                LIMIT,
                () -> router.status("x") == 200,
                () -> router.get("/metrics"));
    }

    /** Starts a prefill engine. */
    ChildProcess startPrefill(int port, int sideChannelPort) {
        return serve(
                "prefill",
                port,
                sideChannelPort,
                "--max-model-len",
                "1024",
                "--max-num-batched-tokens",
                "64",
                "--engine-id",
                "prefill-of-the-test");
    }

    /** Without a prefix cache, so that every prompt has to be read from the prefill engine. */
    private ChildProcess startDecode(int port) {
        return serve("decode", port, 0, "--max-model-len", "512", "--no-enable-prefix-caching");
    }

    private ChildProcess serve(String role, int port, int sideChannelPort, String... more) {
        List<String> arguments = new ArrayList<>(List.of("serve", "--role", role));
        arguments.addAll(List.of("--port", Integer.toString(port), "--admin-port", "0"));
        arguments.addAll(List.of("--shutdown-timeout", "0"));
        arguments.addAll(List.of("--side-channel-port", Integer.toString(sideChannelPort)));
        arguments.addAll(List.of("--kv-cache-memory", "64MiB", "--enable-sleep-mode"));
        arguments.addAll(List.of("--kv-lease-duration", "6", "--kv-transport", "nixl"));
        arguments.addAll(List.of(more));
        arguments.addAll(ofEngines);
        return launch(arguments.toArray(String[]::new));
    }

    private ChildProcess launch(String... arguments) {
        String name = arguments[0] + processes.size();
        boolean computes = arguments[0].equals("serve") && !ofEngines.contains("--model");
        ChildProcess process =
                computes
                        ? ChildProcess.start(name, logs, List.of(arguments))
                        : TinyProcess.start(name, logs, List.of(arguments));
        processes.add(process);
        return process;
    }

    /** A metric that has one sample. */
    static double metric(Endpoint endpoint, String name) {
        return MetricSums.of(endpoint).value(name);
    }

    /** First tokens that an engine has taken from those that computed the prompts. */
    static long firstTokens(Endpoint engine) {
        return (long) metric(engine, "dormouse:first_tokens_remote_total");
    }

    /** Of a metric that has a sample for each transport, that of one. */
    static double metric(Endpoint engine, String name, String transport) {
        Matcher sample =
                Pattern.compile(
                                "^" + name + "\\{.*transport=\"" + transport + "\".*} (.*)$",
                                Pattern.MULTILINE)
                        .matcher(engine.get("/metrics"));
        if (!sample.find()) {
            throw new AssertionError("no metric has the name " + name + " for " + transport);
        }
        return Double.parseDouble(sample.group(1));
    }

    @Override
    public void close() {
        processes.reversed().forEach(ChildProcess::close);
    }
}
