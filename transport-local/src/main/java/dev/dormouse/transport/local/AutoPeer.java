package dev.dormouse.transport.local;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;

/** A peer of one of an {@link AutoTransport}'s two ways. */
final class AutoPeer implements RemotePeer {
    private final KvTransport over;
    private final RemotePeer inner;
    private final Route route;
    private boolean closed;

    AutoPeer(KvTransport over, RemotePeer inner, Route route) {
        this.over = over;
        this.inner = inner;
        this.route = route;
    }

    /** The transport that has loaded it. */
    KvTransport over() {
        return over;
    }

    RemotePeer inner() {
        return inner;
    }

    boolean isClosed() {
        return closed;
    }

    @Override
    public String agentName() {
        return inner.agentName();
    }

    @Override
    public boolean isConnected() {
        return inner.isConnected();
    }

    @Override
    public Route route() {
        return route;
    }

    @Override
    public void close() {
        inner.close();
        closed = true;
    }
}
