package dev.dormouse.cli.demo;

import dev.dormouse.cli.VectorModule;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.route.RouteCommand;
import dev.dormouse.cli.serve.ServeCommand;
import dev.dormouse.cli.serve.ServingEngine;
import dev.dormouse.memory.MemoryUsage;
import dev.dormouse.router.Router;
import java.io.PrintWriter;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/**
 * {@code dormouse rehearse}: does once, small and in one process, what the commands do. The
 * launcher lets the JVM watch it, and keeps what the JVM learned for the starts that follow.
 *
 * <p>The engines compute without vectors, see {@link VectorModule}.
 */
@Command(
        name = RehearseCommand.NAME,
        hidden = true,
        mixinStandardHelpOptions = true,
        description = "Does a little of everything, for the launcher's AOT cache.")
public final class RehearseCommand implements Callable<Integer> {
    /** What the launcher calls it. */
    public static final String NAME = "rehearse";

    /** Few, and short prompts: without vectors a token takes half a second on an old processor. */
    private static final int TOKENS = 2;

    private static final List<String> PROMPTS =
            List.of(
                    "The dormouse sleeps from October to April, and it forgets nothing, because",
                    "In the evening the lamps along the harbour were lit one by one, and then");

    @Spec private CommandSpec spec;

    /** Made by picocli. */
    public RehearseCommand() {}

    @Override
    public Integer call() {
        try (ServingEngine prefill = engine("prefill", List.of("--hold-requests-while-asleep"));
                ServingEngine decode = engine("decode", List.of("--no-enable-prefix-caching"));
                Router router = route(prefill, decode)) {
            DemoReport report =
                    rehearse(
                            EndpointPair.of("prefill", prefill),
                            EndpointPair.of("decode", decode),
                            new Endpoint("router", base(router.port())));
            PrintWriter out = spec.commandLine().getOut();
            out.println(report.toTable());
            out.println(report.toJson());
            out.flush();
            return report.ok() ? 0 : 1;
        } finally {
            VectorModule.load();
        }
    }

    private static ServingEngine engine(String role, List<String> more) {
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "--role",
                                role,
                                "--port",
                                "0",
                                "--shutdown-timeout",
                                "0",
                                "--side-channel-port",
                                "0",
                                "--kv-cache-memory",
                                "64MiB",
                                "--max-model-len",
                                "1024",
                                "--enable-sleep-mode"));
        arguments.addAll(more);
        return CommandLine.populateCommand(new ServeCommand(), arguments.toArray(String[]::new))
                .start();
    }

    private static Router route(ServingEngine prefill, ServingEngine decode) {
        return CommandLine.populateCommand(
                        new RouteCommand(),
                        "--port",
                        "0",
                        "--prefill",
                        base(prefill.port()).toString(),
                        "--decode",
                        base(decode.port()).toString())
                .start();
    }

    private static URI base(int port) {
        return URI.create("http://127.0.0.1:" + port);
    }

    /** Where an engine answers, and where it is put to sleep and woken. */
    private record EndpointPair(Endpoint api, Endpoint admin) {
        static EndpointPair of(String name, ServingEngine engine) {
            return new EndpointPair(
                    new Endpoint(name, base(engine.port())),
                    new Endpoint(name, base(engine.adminPort())));
        }
    }

    /** A row of the demonstration's report: both engines, before and after a sleep. */
    private static DemoReport rehearse(EndpointPair prefill, EndpointPair decode, Endpoint router) {
        Oracle oracle = Oracle.ask(prefill.api(), PROMPTS, TOKENS);
        Oracle.Check awake = oracle.check(router);
        String health = router.get("/health"); // after a wake the router hears of it a little later
        router.chat("Name three colours.", TOKENS);
        prefill.api()
                .post("/tokenize", Json.MAPPER.createObjectNode().put("prompt", "Good morning."));
        double awakeMiB = memoryMiB();
        Counters before = Counters.of(decode.api());
        prefill.admin().post("/sleep?level=1&mode=wait");
        decode.admin().post("/sleep?level=2&mode=wait");
        double asleepMiB = memoryMiB();
        prefill.admin().post("/wake_up");
        decode.admin().post("/wake_up");
        Oracle.Check woken = oracle.check(router);
        Counters delta = Counters.of(decode.api()).minus(before);
        router.get("/metrics");

        int checked = 2 * PROMPTS.size();
        Judgement judgement = new Judgement();
        judgement.outputs(checked, awake.equal() + woken.equal());
        judgement.transfers(delta, Counters.of(prefill.api()), PROMPTS.size());
        judgement.handshakes(delta.handshakes(), 1);
        CaseResult row =
                new CaseResult(
                        "rehearsal",
                        1,
                        checked,
                        awake.equal() + woken.equal(),
                        awakeMiB,
                        asleepMiB,
                        memoryMiB(),
                        delta.failedTransfers(),
                        delta.reads(),
                        delta.computedPromptTokens(),
                        delta.handshakes(),
                        woken.millis().getFirst(),
                        awake.medianMillis(),
                        judgement.complaints());
        return new DemoReport(health, "auto", new DemoReport.Blindness(0, 0), List.of(row));
    }

    private static double memoryMiB() {
        return MemoryUsage.ofProcess(ProcessHandle.current().pid()).pssBytes() / (double) (1 << 20);
    }
}
