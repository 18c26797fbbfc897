package dev.dormouse.cli.serve;

import dev.dormouse.cli.ExitWithParent;
import dev.dormouse.cli.Termination;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.http.HttpListener;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse serve}. */
@Command(
        name = "serve",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Serves a model over HTTP: OpenAI's API, sleep and wake, metrics.",
            "",
            "Alone, or as one leg of a prefill/decode pair (--role) behind `dormouse route`."
        },
        footer = {
            "",
            "Examples:",
            "  dormouse serve",
            "  dormouse serve --role prefill --port 8100 --side-channel-port 5600 --enable-sleep-mode",
            "  dormouse serve --role decode  --port 8200 --side-channel-port 5601 --enable-sleep-mode",
            "  curl -X POST 'localhost:18100/sleep?level=1&mode=wait'"
        })
public final class ServeCommand implements Callable<Integer> {
    @Spec private CommandSpec spec;

    @Mixin private ServeOptions options;

    /** Made by picocli. */
    public ServeCommand() {}

    @Override
    public Integer call() throws InterruptedException {
        if (options.exitWithParent) {
            ExitWithParent.watch();
        }
        ServingEngine engine = start();
        Termination termination = Termination.serving(engine);
        announce(engine);
        engine.warmUp();
        termination.await();
        return 0;
    }

    /** Starts the engine that the options describe; returns when it serves. */
    public ServingEngine start() {
        if (options.model == null) {
            throw new ParameterException(
                    spec.commandLine(),
                    "no model: give --model PATH, or start through ./dormouse, which fetches the default one");
        }
        // Beside the engine, which takes longer.
        Aside<@Nullable Void> http =
                Aside.start(
                        "dormouse-http",
                        () -> {
                            HttpListener.prepare();
                            return null;
                        });
        return ServingEngine.start(ServedModel.open(options.model, options), options, http);
    }

    /** The line that says that it listens comes last: whoever waits for it has seen the others. */
    private void announce(ServingEngine engine) {
        EngineInfo info = engine.info();
        System.out.printf(
                "Sleep, wake, pause and resume on %s%s%n",
                address(options.adminHost, engine.adminPort()),
                options.adminToken == null ? "" : " (with the admin token)");
        System.out.printf(
                "Listening on %s (%s, role %s, %d KV blocks of %d tokens, sleep mode %s)%n",
                address(options.host, engine.port()),
                info.servedModelName(),
                engine.role() == null ? "alone" : engine.role(),
                info.kvBlocks(),
                info.blockTokens(),
                info.sleepModeEnabled() ? "on" : "off");
    }

    private static String address(String host, int port) {
        return "http://" + (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
    }
}
