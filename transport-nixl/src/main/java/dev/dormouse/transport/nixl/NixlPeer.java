package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.RemoteAgent;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;

/** A remote agent of NIXL's. Once closed, it is NIXL's to keep or to drop, and nobody's to use. */
final class NixlPeer implements RemotePeer {
    /** A few hundred bytes per registered range are usual; hostile metadata are not kept. */
    private static final int MAX_PARKED_BYTES = 1 << 16;

    private final RemoteAgent agent;
    private final byte[] metadata;
    private final ParkedPeers parked;
    private boolean closed;

    /**
     * A peer in use.
     *
     * @param metadata what it was loaded from
     * @param parked takes it when it is closed
     */
    NixlPeer(RemoteAgent agent, byte[] metadata, ParkedPeers parked) {
        this.agent = agent;
        this.metadata = metadata;
        this.parked = parked;
    }

    /**
     * NIXL's peer, for use.
     *
     * @throws IllegalStateException if this is closed
     */
    RemoteAgent agent() {
        if (closed) {
            throw new IllegalStateException("peer " + agentName() + " is closed");
        }
        return agent;
    }

    @Override
    public String agentName() {
        return agent.name();
    }

    @Override
    public boolean isConnected() {
        return !closed && agent.isOpen() && !agent.isLost();
    }

    @Override
    public Route route() {
        return Route.direct(NixlTransport.NAME);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        NixlTransport.translated(
                () -> {
                    agent.requireUnused("close");
                    if (isUsableAgain()) {
                        closed = true;
                        parked.park(agent, metadata);
                    } else {
                        agent.close();
                        closed = true;
                    }
                    return null;
                });
    }

    private boolean isUsableAgain() {
        return agent.isOpen() && !agent.isLost() && metadata.length <= MAX_PARKED_BYTES;
    }
}
