package dev.dormouse.connector;

import java.time.Duration;
import java.util.List;

/** Asks a peer's side channel. Called on handshake threads. */
@FunctionalInterface
interface HandshakeClient {
    /**
     * The answers for {@code ranks}, undecoded, in their order. Waits.
     *
     * @param limit of the whole conversation
     * @throws ConnectorException if there is no answer in time, or not one of the right shape
     */
    List<byte[]> fetch(SideChannelAddress address, List<RankId> ranks, Duration limit);
}
