package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.net.InetAddress;

/**
 * Makes both halves of the pull connector: a reader takes KV blocks from the engine that computed
 * them, with one-sided reads. It speaks the protocol of vLLM 0.33.0's NIXL connector.
 */
public final class PullConnector {
    private PullConnector() {}

    /**
     * The half beside an engine's scheduler.
     *
     * @throws ConnectorException if peers cannot reach what is advertised
     */
    public static SchedulerConnector scheduler(ConnectorConfig config) {
        SideChannelAddress.requireReachable(config.advertisedHost(), InetAddress::getAllByName);
        OwnThreads threads = new OwnThreads(config.peers());
        return new PullScheduler(config, threads.surroundings(), threads);
    }

    /** The half beside an engine's scheduler, in {@code surroundings} that stay the caller's. */
    public static SchedulerConnector scheduler(ConnectorConfig config, Surroundings surroundings) {
        return new PullScheduler(config, surroundings, () -> {});
    }

    /**
     * The half beside one rank's memory.
     *
     * @param tpRank the rank, from 0
     * @param transport the rank's transport; the connector owns it from now on, and closes it
     */
    public static WorkerConnector worker(
            ConnectorConfig config, int tpRank, KvTransport transport) {
        OwnThreads threads = new OwnThreads(config.peers());
        return new PullWorker(config, tpRank, transport, threads.surroundings(), threads);
    }

    /** The half beside one rank's memory, in {@code surroundings} that stay the caller's. */
    public static WorkerConnector worker(
            ConnectorConfig config, int tpRank, KvTransport transport, Surroundings surroundings) {
        return new PullWorker(config, tpRank, transport, surroundings, () -> {});
    }
}
