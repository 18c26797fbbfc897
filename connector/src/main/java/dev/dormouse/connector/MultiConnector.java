package dev.dormouse.connector;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Makes both halves of a connector of several, in vLLM's manner. Here, each of them has its own
 * agents, side channel and payloads: a peer of one could not use another's.
 */
public final class MultiConnector {
    private MultiConnector() {}

    /** The half beside an engine's scheduler; it owns {@code children}, in their order. */
    public static SchedulerConnector scheduler(List<SchedulerConnector> children) {
        return new MultiScheduler(children);
    }

    /**
     * The half beside one rank's memory.
     *
     * @param children owned by it, in the same order
     * @param nanoClock what limits are counted on
     */
    public static WorkerConnector worker(List<WorkerConnector> children, LongSupplier nanoClock) {
        return new MultiWorker(children, nanoClock);
    }

    /** Does all, and throws the first failure with the others. */
    static <T> void forAll(String operation, List<T> children, Consumer<T> action) {
        ConnectorException failure =
                new ConnectorException("multi connector: " + operation + " failed");
        for (T child : children) {
            try {
                action.accept(child);
            } catch (RuntimeException e) {
                failure.addSuppressed(e);
            }
        }
        if (failure.getSuppressed().length > 0) {
            throw failure;
        }
    }
}
