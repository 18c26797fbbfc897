package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.net.InetAddress;

/**
 * Makes both halves of the push connector: an engine that computed KV blocks writes them to the one
 * that waits for them. It speaks the protocol of vLLM 0.33.0's NIXL push connector; the factors of
 * both sides must be {@linkplain CompatibilityFactors#pushed pushed}.
 */
public final class PushConnector {
    private PushConnector() {}

    /**
     * The half beside an engine's scheduler.
     *
     * @throws ConnectorException if peers cannot reach what is advertised
     */
    public static SchedulerConnector scheduler(ConnectorConfig config) {
        SideChannelAddress.requireReachable(config.advertisedHost(), InetAddress::getAllByName);
        OwnThreads threads = new OwnThreads(config.peers());
        return new PushScheduler(config, threads.surroundings(), threads);
    }

    /** The half beside an engine's scheduler, in {@code surroundings} that stay the caller's. */
    public static SchedulerConnector scheduler(ConnectorConfig config, Surroundings surroundings) {
        return new PushScheduler(config, surroundings, () -> {});
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
        return new PushWorker(config, tpRank, transport, threads.surroundings(), threads);
    }

    /** The half beside one rank's memory, in {@code surroundings} that stay the caller's. */
    public static WorkerConnector worker(
            ConnectorConfig config, int tpRank, KvTransport transport, Surroundings surroundings) {
        return new PushWorker(config, tpRank, transport, surroundings, () -> {});
    }
}
