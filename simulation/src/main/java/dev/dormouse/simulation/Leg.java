package dev.dormouse.simulation;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationListener;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A request at one engine: compares each token with the oracle's as it comes. */
final class Leg implements GenerationListener {
    /** How a leg ended. */
    sealed interface Outcome {
        /** The engine has ended it. */
        record Finished(FinishReason reason, @Nullable KvTransferParams params)
                implements Outcome {}

        /** The engine has refused it, or failed with it. */
        record Failed(FailureKind kind, String message) implements Outcome {}

        /** The engine's process ended. */
        record Lost() implements Outcome {}
    }

    private final String id;
    private final List<Integer> expected;
    private final EngineProcess process;
    private final Consumer<String> accuse;
    private final BiConsumer<Leg, Outcome> then;
    private int tokens;
    private boolean over;

    /**
     * A leg that begins.
     *
     * @param expected all tokens that are asked for
     * @param accuse takes what a token or an event has broken
     * @param then takes the outcome
     */
    Leg(
            String id,
            List<Integer> expected,
            EngineProcess process,
            Consumer<String> accuse,
            BiConsumer<Leg, Outcome> then) {
        this.id = id;
        this.expected = expected;
        this.process = process;
        this.accuse = accuse;
        this.then = then;
    }

    EngineProcess process() {
        return process;
    }

    String id() {
        return id;
    }

    int tokens() {
        return tokens;
    }

    /** The process is gone, and with it the connection. */
    void lost() {
        end(new Outcome.Lost());
    }

    @Override
    public void onEvent(GenerationEvent event) {
        if (over) {
            accuse.accept(this + ": an event after the last: " + event);
            return;
        }
        switch (event) {
            case GenerationEvent.Prompt _ -> accuse.accept(this + ": was not asked for its prompt");
            case GenerationEvent.Tokens output -> output.tokenIds().forEach(this::compare);
            case GenerationEvent.Finished finished -> {
                if (finished.reason() != FinishReason.ABORT && tokens != expected.size()) {
                    accuse.accept(
                            "%s: finished with %d of %d tokens"
                                    .formatted(this, tokens, expected.size()));
                }
                end(new Outcome.Finished(finished.reason(), finished.kvTransferParams()));
            }
            case GenerationEvent.Failed failed ->
                    end(new Outcome.Failed(failed.kind(), failed.message()));
        }
    }

    private void compare(int token) {
        if (tokens >= expected.size() || expected.get(tokens) != token) {
            accuse.accept(
                    "%s: WRONG TOKEN: token %d is %d, the oracle says %s"
                            .formatted(this, tokens, token, expected));
        }
        tokens++;
    }

    private void end(Outcome outcome) {
        if (!over) {
            over = true;
            then.accept(this, outcome);
        }
    }

    @Override
    public String toString() {
        return id + " at " + process;
    }
}
