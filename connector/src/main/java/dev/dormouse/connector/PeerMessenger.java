package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;

/** Sends messages to loaded peers. */
final class PeerMessenger {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final KvTransport transport;
    private final StatisticsRecorder statistics;

    PeerMessenger(KvTransport transport, StatisticsRecorder statistics) {
        this.transport = transport;
        this.statistics = statistics;
    }

    /**
     * Sends to all ranks of what is loaded of an engine. A peer that turns out to be lost is
     * invalid from then on.
     *
     * @return how many ranks took the message
     */
    int send(RemoteEngine engine, LoadedEngine loaded, byte[] message, long nowNanos) {
        int sent = 0;
        for (LoadedEngine.SourceRank rank : loaded.ranks()) {
            try {
                transport.notify(rank.peer(), message);
                sent++;
            } catch (TransportException | IllegalArgumentException e) {
                statistics.failedNotification();
                LOG.log(
                        System.Logger.Level.DEBUG,
                        "message not sent: {0}; remoteEngine={1}",
                        e.getMessage(),
                        Excerpt.of(engine.engineId()));
                if (!loaded.isConnected()) {
                    engine.invalidate(nowNanos);
                }
            }
        }
        return sent;
    }

    /** True if all ranks took it. */
    boolean sendToAll(RemoteEngine engine, LoadedEngine loaded, byte[] message, long nowNanos) {
        return send(engine, loaded, message, nowNanos) == loaded.ranks().size();
    }
}
