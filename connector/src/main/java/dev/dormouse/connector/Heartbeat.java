package dev.dormouse.connector;

import java.time.Duration;
import java.util.List;

/**
 * A lease renewal to one producer.
 *
 * @param engineId the producing engine
 * @param host its side channel host
 * @param port its side channel port
 * @param tpSize its tensor parallel size
 * @param epoch the newest registration epoch that the requests name, 0 if they name none
 * @param lease how long it holds what is not renewed
 * @param remoteRequestIds the producer's request ids to renew
 */
public record Heartbeat(
        String engineId,
        String host,
        int port,
        int tpSize,
        long epoch,
        Duration lease,
        List<String> remoteRequestIds) {
    /** Copies the list. */
    public Heartbeat {
        remoteRequestIds = List.copyOf(remoteRequestIds);
    }
}
