package dev.dormouse.connector;

import java.time.Duration;
import java.util.List;

/** Asks a peer's side channel. Called on handshake threads. */
@FunctionalInterface
interface HandshakeClient {
    /**
     * The answers for {@code ranks}, undecoded, in their order, and, from a peer that can tell,
     * whether it still holds {@code requestIds}. Waits.
     *
     * @param requestIds the peer's own ids
     * @param limit of the whole conversation
     * @throws ConnectorException if there is no answer in time, or not one of the right shape
     */
    HandshakeAnswers ask(
            SideChannelAddress address,
            List<RankId> ranks,
            List<String> requestIds,
            Duration limit);
}
