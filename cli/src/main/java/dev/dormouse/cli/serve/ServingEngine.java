package dev.dormouse.cli.serve;

import dev.dormouse.cli.Version;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.server.EngineServer;
import dev.dormouse.server.ModelText;
import dev.dormouse.server.ServedLegs;
import dev.dormouse.server.ServerConfig;
import java.time.Clock;
import org.jspecify.annotations.Nullable;

/** An engine with its HTTP server and its model file. */
public final class ServingEngine implements AutoCloseable {
    private final ServedModel model;
    private final Engine engine;
    private final EngineServer server;
    private final ServeOptions.@Nullable Role role;

    private ServingEngine(
            ServedModel model,
            Engine engine,
            EngineServer server,
            ServeOptions.@Nullable Role role) {
        this.model = model;
        this.engine = engine;
        this.server = server;
        this.role = role;
    }

    /** Returns when it serves. The model is its own from the call on. */
    static ServingEngine start(ServedModel model, ServeOptions options) {
        try {
            KvSettings settings = KvSettings.of(options);
            Engine engine = model.startEngine(options, settings);
            try {
                return new ServingEngine(
                        model,
                        engine,
                        serve(model, engine, options, settings.role()),
                        settings.role());
            } catch (RuntimeException e) {
                engine.close();
                throw e;
            }
        } catch (RuntimeException e) {
            model.close();
            throw e;
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
                        options.apiKeys(System.getenv()),
                        Version.ofProject()),
                engine,
                new ModelText(model.tokenizer(), model.chatTemplate()),
                Clock.systemUTC(),
                System::nanoTime);
    }

    private static ServedLegs servedLegs(ServeOptions.@Nullable Role role) {
        return switch (role) {
            case prefill -> ServedLegs.PREFILL;
            case decode -> ServedLegs.DECODE;
            case both -> ServedLegs.BOTH;
            case null -> ServedLegs.BOTH;
        };
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

    /** Closes the server, then the engine, then the model file, also when one of them fails. */
    @Override
    public void close() {
        try (model;
                engine;
                server) {
            // In the reverse order of this list.
        }
    }
}
