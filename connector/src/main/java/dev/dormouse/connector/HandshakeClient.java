package dev.dormouse.connector;

import java.util.List;

/** Asks a peer's side channel. Called on handshake threads. */
@FunctionalInterface
interface HandshakeClient {
    /**
     * The answers for {@code ranks}, undecoded, in their order, and, from a peer that can tell,
     * whether it still holds {@code requestIds}. Waits.
     *
     * @param requestIds the peer's own ids
     * @throws ConnectorException if there is no answer in time, or not one of the right shape
     */
    HandshakeAnswers ask(SideChannelAddress address, List<RankId> ranks, List<String> requestIds);

    /** As {@link #ask}, for the payloads only. */
    default List<byte[]> fetch(SideChannelAddress address, List<RankId> ranks) {
        return ask(address, ranks, List.of()).payloads();
    }
}
