package dev.dormouse.connector;

/**
 * The threads and sockets with which one half of a connector asks other engines; closed with it.
 */
final class OwnThreads implements AutoCloseable {
    private final HandshakePool threads = new HandshakePool();
    private final SideChannelClient client;

    OwnThreads(PeerPolicy peers) {
        client = new SideChannelClient(peers);
    }

    Surroundings surroundings() {
        return Surroundings.ofMachine(client, threads);
    }

    @Override
    public void close() {
        threads.close();
        client.close();
    }
}
