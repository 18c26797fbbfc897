package dev.dormouse.cli.route;

import dev.dormouse.cli.ExitWithParent;
import dev.dormouse.cli.Termination;
import dev.dormouse.router.Router;
import dev.dormouse.router.RouterConfig;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code dormouse route}. */
@Command(
        name = "route",
        mixinStandardHelpOptions = true,
        description = {
            "Routes each request over a prefill engine and a decode engine.",
            "",
            "The prefill engine computes the prompt; the decode engine reads its KV cache and answers. Engines of a role take"
                    + " turns. `GET /health` says which of them are up."
        })
public final class RouteCommand implements Callable<Integer> {
    private static final System.Logger LOG = System.getLogger("dormouse.cli");

    /** How long the JDK's HTTP client keeps an idle connection; it reads this when first used. */
    private static final String IDLE_SECONDS = "jdk.httpclient.keepalive.timeout";

    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "HTTP address (default: ${DEFAULT-VALUE}).")
    private String host = "";

    @Option(
            names = "--port",
            defaultValue = "8080",
            description = "HTTP port, 0 for a free one (default: ${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "--prefill",
            paramLabel = "URL",
            required = true,
            description = "A prefill engine; may be repeated.")
    private List<URI> prefill = List.of();

    @Option(
            names = "--decode",
            paramLabel = "URL",
            required = true,
            description = "A decode engine; may be repeated.")
    private List<URI> decode = List.of();

    @Option(
            names = "--forward-last-turn",
            description =
                    "Give the prefill engine the kv_transfer_params that a client sends, so that it reads the last turn's KV"
                            + " from the decode engine (bidirectional_kv_xfer). For trusted clients only: they choose which"
                            + " memory is read.")
    private boolean forwardLastTurn;

    @Option(
            names = "--shutdown-timeout",
            paramLabel = "SECONDS",
            defaultValue = "15",
            description =
                    "How long requests may take to their end when the router is told to end (default: ${DEFAULT-VALUE}).")
    private int shutdownTimeoutSeconds;

    @SuppressWarnings(
            "UnusedVariable") // for --help: ConfigFile has replaced it by the file's options
    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "YAML file of these options; the command line wins.")
    private @Nullable Path config;

    @Option(
            names = "--exit-with-parent",
            hidden = true,
            description = "End when standard input closes.")
    private boolean exitWithParent;

    /** Made by picocli. */
    public RouteCommand() {}

    @Override
    public Integer call() throws InterruptedException {
        if (exitWithParent) {
            ExitWithParent.watch();
        }
        // vLLM's server closes connections that were idle for 5 s, and whatever is sent on one at
        // that moment is lost: the router closes them first.
        System.setProperty(IDLE_SECONDS, System.getProperty(IDLE_SECONDS, "4"));
        Router router = start();
        Termination termination = Termination.serving(() -> windDown(router), router);
        System.out.printf(
                "Listening on http://%s:%d (router, prefill %s, decode %s)%n",
                host, router.port(), prefill, decode);
        termination.await();
        return 0;
    }

    private void windDown(Router router) throws InterruptedException {
        if (!router.windDown(Duration.ofSeconds(shutdownTimeoutSeconds))) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "requests have not ended within {0} s; they end now",
                    shutdownTimeoutSeconds);
        }
    }

    /** Starts the router that the options describe. */
    public Router start() {
        RouterConfig.Builder builder =
                RouterConfig.builder().host(host).port(port).forwardLastTurn(forwardLastTurn);
        prefill.forEach(builder::prefillEngine);
        decode.forEach(builder::decodeEngine);
        return Router.start(builder.build());
    }
}
