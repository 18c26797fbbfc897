package dev.dormouse.testkit;

import dev.dormouse.transport.RemotePeer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A loaded agent: its incarnation and the keys of its memory as they were when it was loaded. */
final class ModelPeer implements RemotePeer {
    /** A range of the peer's memory and the key that reads must name. */
    record RemoteSection(long key, long address, long lengthBytes) {
        boolean covers(long at, long bytes) {
            return at >= address && bytes <= lengthBytes && at - address <= lengthBytes - bytes;
        }
    }

    private final ModelTransport owner;
    private final String agentName;
    private final long incarnation;
    private final List<RemoteSection> sections;
    private boolean connected = true;
    private boolean closed;
    private int lists;

    ModelPeer(
            ModelTransport owner,
            String agentName,
            long incarnation,
            List<RemoteSection> sections) {
        this.owner = owner;
        this.agentName = agentName;
        this.incarnation = incarnation;
        this.sections = List.copyOf(sections);
    }

    @Nullable RemoteSection covering(long address, long lengthBytes) {
        for (RemoteSection section : sections) {
            if (section.covers(address, lengthBytes)) {
                return section;
            }
        }
        return null;
    }

    /** The agent behind it, or null, and disconnected from now on, if that has gone. */
    @Nullable ModelTransport reach() {
        ModelTransport found = connected ? owner.fabric().find(agentName, incarnation) : null;
        connected = found != null;
        return found;
    }

    /** True if its process runs, connected or not. */
    boolean isAlive() {
        return owner.fabric().find(agentName, incarnation) != null;
    }

    void disconnect() {
        connected = false;
    }

    boolean isClosed() {
        return closed;
    }

    void addList(int change) {
        lists += change;
    }

    @Override
    public String agentName() {
        return agentName;
    }

    @Override
    public boolean isConnected() {
        synchronized (owner.fabric()) {
            return connected && !closed;
        }
    }

    @Override
    public void close() {
        synchronized (owner.fabric()) {
            if (closed) {
                return;
            }
            if (lists > 0) {
                throw new IllegalStateException(
                        "drop peer " + agentName + ": " + lists + " prepared lists still use it");
            }
            owner.faults().beforePeerClose();
            closed = true;
            owner.forget(this);
        }
    }
}
