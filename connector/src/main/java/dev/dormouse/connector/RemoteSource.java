package dev.dormouse.connector;

/**
 * The producer of a request's KV, as its {@code kv_transfer_params} name it. Untrusted.
 *
 * @param engineId the producing engine
 * @param requestId the producer's own request id
 * @param host side channel host
 * @param port side channel port
 * @param tpSize the producer's tensor parallel size
 * @param epoch the registration epoch in which the blocks were handed over; 0 if the parameters
 *     name none
 */
public record RemoteSource(
        String engineId, String requestId, String host, int port, int tpSize, long epoch) {}
