package dev.dormouse.engine.core;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.output.TextDecoder;
import dev.dormouse.model.LanguageModel;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * An engine without a thread of its own: its owner makes each round of its loop, so that a
 * simulation decides what happens when. It speaks of tokens only, their text is empty. Used by one
 * thread.
 */
public final class SteppedEngine implements AutoCloseable {
    private final LocalEngine engine;

    private SteppedEngine(LocalEngine engine) {
        this.engine = engine;
    }

    /**
     * Opens an engine: it has memory and weights, and is known to other engines, when the call
     * returns.
     *
     * @param model as many ranks as it has, the engine has
     * @param connector moves KV to and from other engines, or null for an engine that works alone
     */
    public static SteppedEngine open(
            EngineConfig config,
            LanguageModel model,
            @Nullable ConnectorHalves connector,
            Engines.Surroundings surroundings) {
        SteppedEngine stepped =
                new SteppedEngine(
                        Engines.assemble(
                                config,
                                model,
                                () -> new Engines.Text(Set.of(), _ -> NO_TEXT),
                                () -> connector,
                                surroundings));
        stepped.engine.core().open();
        return stepped;
    }

    /** The engine, for requests and transitions; it must be closed here, not there. */
    public Engine engine() {
        return engine;
    }

    /**
     * One round of the engine's loop.
     *
     * @return 0 if there was nothing to do
     */
    public int step() {
        return engine.core().stepOrFail();
    }

    /** The error that ended its service although no transition had failed, or null. */
    public @Nullable Throwable failure() {
        return engine.core().failure();
    }

    /** Ends it as {@link Engine#close} does. */
    @Override
    public void close() {
        engine.core().close();
    }

    /** For models whose tokens have none. */
    static final TextDecoder NO_TEXT =
            new TextDecoder() {
                @Override
                public String push(int tokenId) {
                    return "";
                }

                @Override
                public String finish() {
                    return "";
                }
            };
}
