package dev.dormouse.cli.doctor;

import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.local.LocalTransport;
import dev.dormouse.transport.local.LocalTransportOptions;

/** Whether engines of this host can map each other's KV. */
final class SameHostCheck {
    private static final String TOPIC = "same host";

    private SameHostCheck() {}

    static Finding finding() {
        try (LocalTransport _ =
                LocalTransport.open(
                        LocalTransportOptions.of(
                                range -> {
                                    throw new TransportException("nothing is shared: " + range);
                                }))) {
            return Finding.ok(TOPIC, "engines of one user map each other's KV");
        } catch (TransportException e) {
            return Finding.warn(
                    TOPIC,
                    "engines cannot map each other's KV: " + e.getMessage(),
                    "needs memory files and Unix sockets (until then KV goes over NIXL)");
        }
    }
}
