package dev.dormouse.engine.core;

import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerConnector;
import java.util.List;

/**
 * An engine's connector: the engine owns and closes both halves.
 *
 * @param scheduler the half beside the scheduler
 * @param workers the other half, one per rank, in rank order
 */
public record ConnectorHalves(SchedulerConnector scheduler, List<WorkerConnector> workers)
        implements AutoCloseable {
    /** Copies the list. */
    public ConnectorHalves {
        workers = List.copyOf(workers);
    }

    /** Closes what no engine has taken: all of it, also when a part fails. */
    @Override
    public void close() {
        Cleanup cleanup = new Cleanup();
        workers.forEach(half -> cleanup.run(half::close));
        cleanup.run(scheduler::close);
        cleanup.finish();
    }
}
