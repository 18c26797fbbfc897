package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * A peer's end of a request's transfer: the producer of its KV, as {@code kv_transfer_params} name
 * it; or, where that writes, the engine that waits for it, as its {@link PushRegistration} does.
 * Untrusted.
 *
 * @param engineId the peer
 * @param instanceId the peer's process, null if the parameters name none
 * @param requestId the peer's own request id
 * @param host side channel host
 * @param port side channel port
 * @param tpSize the peer's tensor parallel size
 * @param ppSize the peer's pipeline parallel size
 * @param epoch the registration epoch in which the blocks were handed over; 0 if the parameters
 *     name none
 * @param lease for how long the blocks are held
 */
public record RemoteSource(
        String engineId,
        @Nullable String instanceId,
        String requestId,
        String host,
        int port,
        int tpSize,
        int ppSize,
        long epoch,
        RemoteLease lease) {
    /** A source whose parameters do not tell for how long the blocks are held. */
    public RemoteSource(
            String engineId,
            @Nullable String instanceId,
            String requestId,
            String host,
            int port,
            int tpSize,
            int ppSize,
            long epoch) {
        this(
                engineId,
                instanceId,
                requestId,
                host,
                port,
                tpSize,
                ppSize,
                epoch,
                RemoteLease.UNKNOWN);
    }

    /** What tells a transfer from all others: the peer's request, and where it is. */
    record Key(
            String engineId,
            @Nullable String instanceId,
            String host,
            int port,
            String requestId) {}

    Key key() {
        return new Key(engineId, instanceId, host, port, requestId);
    }
}
