package dev.dormouse.engine.core;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.GenerationListener;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.TransitionReport;
import java.util.concurrent.CompletableFuture;

/** A message to the engine's thread. */
sealed interface Command {
    /** A new request. */
    record Submit(GenerationRequest request, GenerationListener listener) implements Command {}

    /**
     * A request was refused before it became one; {@code taken} is run when the engine has seen it.
     */
    record Decline(KvTransferParams params, Runnable taken) implements Command {}

    /** The request with the client's id shall end. */
    record Abort(String requestId) implements Command {}

    /** The engine shall change its state, and tell how it went. */
    record Change(Transition transition, CompletableFuture<TransitionReport> outcome)
            implements Command {}

    /** The engine shall end. */
    record Close() implements Command {}
}
