package dev.dormouse.engine;

/**
 * Receives what becomes of a request. Called on the engine's thread, or, if the request is refused
 * at once, within {@link Engine#submit}: must not block and must not throw.
 */
@FunctionalInterface
public interface GenerationListener {
    /**
     * The next event; after {@link GenerationEvent.Finished} or {@link GenerationEvent.Failed}
     * there is no further one.
     */
    void onEvent(GenerationEvent event);
}
