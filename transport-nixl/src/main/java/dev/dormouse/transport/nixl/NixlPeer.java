package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.RemoteAgent;
import dev.dormouse.transport.RemotePeer;

/** A remote agent of NIXL's. */
record NixlPeer(RemoteAgent agent) implements RemotePeer {
    @Override
    public String agentName() {
        return agent.name();
    }

    @Override
    public boolean isConnected() {
        return agent.isOpen() && !agent.isLost();
    }

    @Override
    public void close() {
        NixlTransport.translated(
                () -> {
                    agent.close();
                    return null;
                });
    }
}
