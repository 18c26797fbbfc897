package dev.dormouse.transport.local;

import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.TransportException;
import java.util.List;

/**
 * A peer whose memory is mapped here, as long as its owner lets them be. When that ends, this stays
 * as an object that refuses use, until its user closes it.
 */
final class LocalPeer implements RemotePeer {
    /** Where it stands; from anywhere to what stands behind it. */
    enum State {
        /** Its pages are mapped. */
        LOADED,
        /** Its owner has taken them back. */
        REVOKED,
        /** Its connection has ended. */
        LOST,
        /** Its user has closed it. */
        CLOSED
    }

    private final String agentName;
    private final PeerLink link;
    private final PeerMapping mapping;
    private volatile State state = State.LOADED;
    private volatile String reason = "";
    private int lists;

    LocalPeer(String agentName, PeerLink link, PeerMapping mapping) {
        this.agentName = agentName;
        this.link = link;
        this.mapping = mapping;
    }

    PeerMapping mapping() {
        return mapping;
    }

    /** Sends all of the frames or none, as long as it is loaded. */
    Connection.Sent send(List<byte[]> frames) {
        return link.send(this, frames);
    }

    /** Whether what was sent waits here, and has nobody to go to. */
    boolean isSentInVain() {
        return link.connection().isWaiting() && !link.connection().isHeld();
    }

    void addList(int change) {
        lists += change;
    }

    boolean isClosed() {
        return state == State.CLOSED;
    }

    /** Why it is of no use; empty while it is loaded. */
    String reason() {
        return reason;
    }

    /**
     * Passes if it can be used.
     *
     * @throws IllegalStateException if its user has closed it
     * @throws TransportException if it is revoked or lost
     */
    void requireUsable(String operation) {
        switch (state) {
            case LOADED -> {}
            case REVOKED, LOST ->
                    throw new TransportException(
                            "%s refused: peer %s was %s; close it, and load it from new metadata"
                                    .formatted(operation, agentName, reason));
            case CLOSED ->
                    throw new IllegalStateException(
                            "%s refused: peer %s is closed".formatted(operation, agentName));
        }
    }

    @Override
    public String agentName() {
        return agentName;
    }

    @Override
    public boolean isConnected() {
        return state == State.LOADED;
    }

    @Override
    public Route route() {
        return Route.direct(LocalTransport.NAME);
    }

    @Override
    public void close() {
        if (lists > 0) {
            throw new IllegalStateException(
                    "drop peer " + agentName + ": " + lists + " prepared lists still use it");
        }
        end(State.CLOSED, "closed");
        link.drop(this);
    }

    /** Its memory goes; nothing new is to begin. The first reason stays. */
    synchronized void end(State next, String why) {
        if (state == State.LOADED) {
            reason = why;
            state = next;
        } else if (next == State.CLOSED) {
            state = State.CLOSED;
        }
    }
}
