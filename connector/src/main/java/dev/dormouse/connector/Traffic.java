package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;

/** The transfers of a rank: what a kind of connector has of its own. */
interface Traffic {
    /** What becomes of orders. */
    OrderRules rules();

    /** The peers are known from now on. */
    default void through(RemoteEngines engines) {}

    /** Takes what a step orders beyond reads; not called while released. */
    default void start(ConnectorStep step, long nowNanos) {}

    /** A waiting engine takes its registration back; also while released. */
    default void take(PushCancel cancel) {}

    /** The {@linkplain PushCancel#id() cancellations} that are obeyed since the last call. */
    default Set<String> takeObeyed(long nowNanos) {
        return Set.of();
    }

    /** Takes a peer's message. */
    void take(Notification message, String agentName, long nowNanos);

    /**
     * Drives all transfers.
     *
     * @return the peers with which one has failed
     */
    List<LoadedEngine> progress(long nowNanos);

    /** The KV cache is about to go: what has not begun ends. */
    default void beforeRelease(long nowNanos) {}

    /** True if no transfer can touch this rank's blocks. */
    boolean isQuiet();

    /** What is under way, for a message. */
    List<String> describe(long nowNanos);

    /** True if a hold must not end now: it is being sent. */
    default boolean isSending(String requestId) {
        return false;
    }

    /** What a kind of connector builds its traffic with. */
    record Parts(
            ConnectorConfig config,
            KvTransport transport,
            LocalCache local,
            PeerMessenger messenger,
            ReadOutcomes outcomes,
            SendLedger ledger,
            Set<String> finishedSending,
            StatisticsRecorder statistics,
            LongSupplier nanoClock) {}
}
