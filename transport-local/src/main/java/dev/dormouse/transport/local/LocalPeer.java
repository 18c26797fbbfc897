package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaException;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.TransportException;

/**
 * A peer whose memory is mapped here, as long as its owner lets them be. When that ends, this stays
 * as an object that refuses use, until its user closes it.
 */
final class LocalPeer implements RemotePeer, Watched {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");

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
    private final Connection connection;
    private final PeerMapping mapping;
    private final SocketLoop loop;
    private volatile State state = State.LOADED;
    private volatile String reason = "";
    private int lists;

    LocalPeer(String agentName, Connection connection, PeerMapping mapping, SocketLoop loop) {
        this.agentName = agentName;
        this.connection = connection;
        this.mapping = mapping;
        this.loop = loop;
    }

    PeerMapping mapping() {
        return mapping;
    }

    Connection connection() {
        return connection;
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
    }

    /** Ends it, whatever still uses it. */
    void end(State next, String why) {
        synchronized (this) {
            if (state == State.LOADED) {
                reason = why;
                state = next;
                release();
            } else if (next == State.CLOSED) {
                state = State.CLOSED;
            }
        }
        if (connection.isClosed()) {
            loop.forget(this);
        } else {
            loop.wake();
        }
    }

    /** The owner is told only when nothing can touch its pages any more. */
    private void release() {
        try {
            mapping.unmap();
            connection.sendLast(new Frame.Released().encode());
        } catch (LibcException | CudaException e) {
            LOG.log(
                    System.Logger.Level.ERROR,
                    "a peer's pages stay mapped until this process ends: peer=" + agentName,
                    e);
            connection.close();
        }
    }

    @Override
    public int descriptor() {
        return connection.descriptor();
    }

    @Override
    public int interest() {
        return connection.interest();
    }

    @Override
    public void ready(int events) {
        connection.flush();
        while (state == State.LOADED) {
            switch (connection.receive()) {
                case SocketMessage.Received.Nothing() -> {
                    return;
                }
                case SocketMessage.Received.End() -> end(State.LOST, "disconnected");
                case SocketMessage.Received.Message(byte[] bytes, int[] descriptors, boolean cut) ->
                        take(bytes, cut || descriptors.length > 0);
            }
        }
        if (!connection.isClosed() && (events & PollSet.POLLHUP) != 0) {
            connection.close();
        }
        if (connection.isClosed()) {
            loop.forget(this);
        }
    }

    private void take(byte[] bytes, boolean damaged) {
        try {
            if (!damaged && Frame.decode(bytes) instanceof Frame.Revoke) {
                end(State.REVOKED, "revoked by its owner");
            } else {
                end(State.LOST, "disconnected, since it sent what does not belong here");
            }
        } catch (TransportException e) {
            end(State.LOST, "disconnected: " + e.getMessage());
        }
    }

    @Override
    public void abandon() {
        end(State.LOST, "disconnected after an error here");
        connection.close();
    }
}
