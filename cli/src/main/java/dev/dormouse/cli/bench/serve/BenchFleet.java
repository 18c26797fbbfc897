package dev.dormouse.cli.bench.serve;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.EngineProcess;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Processes that are measured: an engine alone, or a prefill engine, a decode engine and a router.
 * Apart from ports they are as {@code dormouse serve} and {@code dormouse route} make them.
 */
public final class BenchFleet implements AutoCloseable {
    private final List<ChildProcess> processes = new ArrayList<>();
    private final List<EngineProcess> engines = new ArrayList<>();
    private final URI base;

    /** Starts a process of this command; its log goes to {@code logs}. */
    @FunctionalInterface
    public interface Starter {
        ChildProcess start(String name, Path logs, List<String> arguments);
    }

    /**
     * How engines are started.
     *
     * @param starter starts them
     * @param model what they serve; null for the default
     * @param logs where their logs go
     */
    public record Setting(Starter starter, @Nullable Path model, Path logs) {}

    /** An engine that is to be started. */
    private record Start(String name, List<String> options) {}

    private BenchFleet(Setting setting, List<Start> starts) {
        try {
            for (Start start : starts) {
                List<String> arguments = serve(setting, start.options());
                processes.add(setting.starter().start(start.name(), setting.logs(), arguments));
            }
            processes.forEach(process -> engines.add(new EngineProcess(process)));
            base = engines.size() == 1 ? engines.getFirst().endpoint().base() : route(setting);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** An engine alone, with further options. */
    public static BenchFleet single(Setting setting, String... more) {
        return new BenchFleet(setting, List.of(new Start("engine", List.of(more))));
    }

    /** A prefill engine and a decode engine, with further options each, behind a router. */
    public static BenchFleet pair(Setting setting, List<String> ofPrefill, List<String> ofDecode) {
        return new BenchFleet(
                setting, List.of(role("prefill", ofPrefill), role("decode", ofDecode)));
    }

    /** Compute threads of each engine when two share this machine. */
    public static int threadsOfHalf() {
        return Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
    }

    private static Start role(String role, List<String> more) {
        List<String> options = new ArrayList<>(List.of("--role", role));
        options.addAll(List.of("--side-channel-port", "0"));
        options.addAll(more);
        return new Start(role, options);
    }

    /** The command of an engine, with further options. */
    public static List<String> serve(Setting setting, List<String> more) {
        List<String> arguments = new ArrayList<>(List.of("serve", "--port", "0"));
        arguments.addAll(List.of("--shutdown-timeout", "0", "--enable-sleep-mode"));
        arguments.addAll(more);
        if (setting.model() != null) {
            arguments.addAll(List.of("--model", setting.model().toString()));
        }
        return arguments;
    }

    private URI route(Setting setting) {
        List<String> arguments = new ArrayList<>(List.of("route", "--port", "0"));
        arguments.addAll(List.of("--shutdown-timeout", "0"));
        arguments.addAll(List.of("--prefill", prefill().endpoint().base().toString()));
        arguments.addAll(List.of("--decode", decode().endpoint().base().toString()));
        ChildProcess router = setting.starter().start("router", setting.logs(), arguments);
        processes.add(router);
        return router.awaitReady();
    }

    /** Where clients send their requests: the engine's address, or the router's. */
    public URI base() {
        return base;
    }

    /** The engine alone, or the one that computes prompts. */
    public EngineProcess prefill() {
        return engines.getFirst();
    }

    /** The engine alone, or the one that generates. */
    public EngineProcess decode() {
        return engines.getLast();
    }

    /** Ids of all processes: the prefill engine's, the decode engine's, the router's. */
    public List<Long> pids() {
        return processes.stream().map(ChildProcess::pid).toList();
    }

    @Override
    public void close() {
        processes.reversed().forEach(ChildProcess::close);
    }
}
