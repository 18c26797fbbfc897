package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.net.InetAddress;
import java.time.Instant;
import java.util.concurrent.locks.LockSupport;

/**
 * Makes both halves of the pull connector: a reader takes KV blocks from the engine that computed
 * them, with one-sided reads. It speaks the protocol of vLLM 0.33.0's NIXL connector.
 */
public final class PullConnector {
    private static final long IDLE_NANOS = 200_000;

    private PullConnector() {}

    /**
     * The half beside an engine's scheduler.
     *
     * @throws ConnectorException if peers cannot reach what is advertised
     */
    public static SchedulerConnector scheduler(ConnectorConfig config) {
        SideChannelAddress.requireReachable(config.advertisedHost(), InetAddress::getAllByName);
        return new PullScheduler(
                config,
                epochBase(Instant.now()),
                System::nanoTime,
                address -> new SideChannelListener(address, System::nanoTime));
    }

    /**
     * Where a process's epochs begin, so that they rise over its restarts also for readers that do
     * not know instance ids. Room for a million wakes a second, and exact in JSON's doubles.
     */
    static long epochBase(Instant start) {
        return Math.max(0, start.getEpochSecond()) << 20;
    }

    /**
     * The half beside one rank's memory.
     *
     * @param tpRank the rank, from 0
     * @param transport the rank's transport; the connector owns it from now on, and closes it
     */
    public static WorkerConnector worker(
            ConnectorConfig config, int tpRank, KvTransport transport) {
        HandshakePool threads = new HandshakePool();
        SideChannelClient client = new SideChannelClient(config.peers());
        return new PullWorker(
                config,
                tpRank,
                transport,
                new PullWorker.Surroundings(
                        System::nanoTime, () -> LockSupport.parkNanos(IDLE_NANOS), client, threads),
                () -> {
                    threads.close();
                    client.close();
                });
    }
}
