package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * The producer of a request's KV, as its {@code kv_transfer_params} name it. Untrusted.
 *
 * @param engineId the producing engine
 * @param instanceId the producer's process, null if the parameters name none
 * @param requestId the producer's own request id
 * @param host side channel host
 * @param port side channel port
 * @param tpSize the producer's tensor parallel size
 * @param ppSize the producer's pipeline parallel size
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
}
