package dev.dormouse.cli.serve;

import dev.dormouse.cli.ExitWithParent;
import dev.dormouse.cli.Termination;
import dev.dormouse.engine.EngineInfo;
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
            "  curl -X POST 'localhost:8100/sleep?level=1&mode=wait'"
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
        Termination termination = Termination.closing(engine);
        announce(engine.info(), engine.role(), engine.port());
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
        return ServingEngine.start(ServedModel.open(options.model, options), options);
    }

    private void announce(EngineInfo info, ServeOptions.@Nullable Role role, int port) {
        System.out.printf(
                "Listening on http://%s:%d (%s, role %s, %d KV blocks of %d tokens, sleep mode %s)%n",
                options.host,
                port,
                info.servedModelName(),
                role == null ? "alone" : role,
                info.kvBlocks(),
                info.blockTokens(),
                info.sleepModeEnabled() ? "on" : "off");
    }
}
