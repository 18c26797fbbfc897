package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.RemoteAgent;
import dev.dormouse.transport.RemotePeer;

/** A remote agent of NIXL's. Once closed, it is NIXL's to keep or to drop, and nobody's to use. */
final class NixlPeer implements RemotePeer {
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
    public void close() {
        if (closed) {
            return;
        }
        NixlTransport.translated(
                () -> {
                    agent.requireUnused("close");
                    closed = true;
                    if (isUsableAgain()) {
                        parked.park(agent, metadata);
                    } else {
                        agent.close();
                    }
                    return null;
                });
    }

    private boolean isUsableAgain() {
        return agent.isOpen() && !agent.isLost();
    }
}
