package dev.dormouse.cli.serve;

import dev.dormouse.cli.Version;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.server.AdminConfig;
import dev.dormouse.server.EngineServer;
import dev.dormouse.server.ServedLegs;
import dev.dormouse.server.ServerConfig;
import java.lang.System.Logger.Level;
import java.time.Clock;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** An engine with its HTTP server and its model file. */
public final class ServingEngine implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.cli");

    /** For errors to reach whoever waits for an answer, once the engine is closed. */
    private static final Duration LAST_ANSWERS = Duration.ofSeconds(2);

    private final ServedModel model;
    private final Engine engine;
    private final EngineServer server;
    private final ServeOptions.@Nullable Role role;
    private final Duration shutdownLimit;

    private ServingEngine(
            ServedModel model,
            Engine engine,
            EngineServer server,
            ServeOptions.@Nullable Role role,
            Duration shutdownLimit) {
        this.model = model;
        this.engine = engine;
        this.server = server;
        this.role = role;
        this.shutdownLimit = shutdownLimit;
    }

    /**
     * Returns when it serves. The model is its own from the call on.
     *
     * @param http makes HTTP ready; waited for before the server starts
     */
    static ServingEngine start(
            ServedModel model, ServeOptions options, Aside<@Nullable Void> http) {
        try {
            KvSettings settings = KvSettings.of(options);
            Engine engine = model.startEngine(options, settings);
            try {
                // Two threads in Helidon's static initialisers could wait for each other.
                var _ = http.get();
                return new ServingEngine(
                        model,
                        engine,
                        serve(model, engine, options, settings.role()),
                        settings.role(),
                        Duration.ofSeconds(options.shutdownTimeoutSeconds));
            } catch (RuntimeException | Error e) {
                try (engine) { // its thread would keep the process alive
                    throw e;
                }
            }
        } catch (RuntimeException | Error e) {
            try (model) {
                throw e;
            }
        }
    }

    private static EngineServer serve(
            ServedModel model,
            Engine engine,
            ServeOptions options,
            ServeOptions.@Nullable Role role) {
        return EngineServer.start(
                new ServerConfig(
                        options.host,
                        options.port,
                        ServerConfig.DEFAULT_MAX_BODY_BYTES,
                        options.maxNumSeqs + options.maxNumWaiting,
                        servedLegs(role),
                        options.schedulingPolicy == ServeOptions.SchedulingPolicy.priority,
                        admin(options),
                        options.apiKeys(System.getenv()),
                        Version.ofProject()),
                engine,
                model.text(),
                Clock.systemUTC(),
                System::nanoTime);
    }

    /** With vLLM's development mode in the environment, as in vLLM, on the public listener too. */
    private static AdminConfig admin(ServeOptions options) {
        return new AdminConfig(
                options.adminHost,
                options.adminPort == null
                        ? AdminConfig.defaultPort(options.port)
                        : options.adminPort,
                options.adminToken,
                "1".equals(System.getenv("VLLM_SERVER_DEV_MODE")));
    }

    private static ServedLegs servedLegs(ServeOptions.@Nullable Role role) {
        return switch (role) {
            case prefill -> ServedLegs.PREFILL;
            case decode -> ServedLegs.DECODE;
            case both -> ServedLegs.BOTH;
            case null -> ServedLegs.BOTH;
        };
    }

    /**
     * Has the kernels compiled, aside. Not before the engine serves: the JIT would take the
     * processors that its start needs.
     */
    void warmUp() {
        Thread.ofPlatform().daemon().name("dormouse-warm-up").start(model::warmUp);
    }

    EngineInfo info() {
        return engine.info();
    }

    /** Which leg it serves, or null if it works alone. */
    ServeOptions.@Nullable Role role() {
        return role;
    }

    /** The port that its HTTP server listens on. */
    public int port() {
        return server.port();
    }

    /** The port that its admin listener is bound to. */
    public int adminPort() {
        return server.adminPort();
    }

    /**
     * Lets requests and readers end within the limit, while it takes no new ones, and ends those
     * that do not with an error; closes engine, server and model file, also when one of them fails.
     */
    @Override
    public void close() {
        server.stopAdmitting();
        windDown();
        try (model;
                server) {
            try (engine) {
                // Whoever still waits for an answer is told now.
            } finally {
                awaitAnswers();
            }
        }
    }

    private void windDown() {
        try {
            engine.windDown().get(shutdownLimit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            LOG.log(
                    Level.WARNING,
                    "requests or readers have not ended within {0} s; they end now",
                    shutdownLimit.toSeconds());
        } catch (ExecutionException e) {
            LOG.log(Level.WARNING, "the engine ends as it is: {0}", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitAnswers() {
        try {
            if (!server.awaitAnswers(LAST_ANSWERS)) {
                LOG.log(Level.WARNING, "some answers were not taken by their clients");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
