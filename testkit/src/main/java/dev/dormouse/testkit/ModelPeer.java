package dev.dormouse.testkit;

import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
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
    private @Nullable ModelMapping mapping;
    private boolean asked;
    private long askedNanos;
    private @Nullable String lostBecause;
    private boolean closed;
    private int lists;

    /**
     * A loaded peer.
     *
     * @param mapping its pages, if the reader maps them by itself
     */
    ModelPeer(
            ModelTransport owner,
            String agentName,
            long incarnation,
            List<RemoteSection> sections,
            @Nullable ModelMapping mapping) {
        this.owner = owner;
        this.agentName = agentName;
        this.incarnation = incarnation;
        this.sections = List.copyOf(sections);
        this.mapping = mapping;
        if (mapping != null) {
            mapping.addTo(this);
        }
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
        obeyIfDue();
        ModelTransport found = owner.fabric().find(agentName, incarnation);
        if (found == null) {
            lose("it is gone");
        }
        return lostBecause == null ? found : null;
    }

    /** True if its process runs, connected or not. */
    boolean isAlive() {
        return owner.fabric().find(agentName, incarnation) != null;
    }

    /** What lies under a key there, or null; what the reader maps by itself is not asked for. */
    ModelRegistration.@Nullable Section section(ModelTransport target, long key) {
        return owner.fabric().addressing() != Addressing.MAPPED
                ? target.section(key)
                : mapping == null ? null : mapping.section(key);
    }

    void disconnect() {
        lose("disconnected");
    }

    /** Why it is not connected, for messages. */
    String lostBecause() {
        return lostBecause == null ? "connected" : lostBecause;
    }

    private void lose(String reason) {
        if (lostBecause == null) {
            lostBecause = reason;
        }
        unmapIfUnused();
    }

    /** Its owner asks the reader to unmap what it has mapped. It does by itself, in its time. */
    void revoke() {
        if (!asked) {
            asked = true;
            askedNanos = owner.fabric().nanoTime();
        }
        obeyIfDue();
    }

    /** What the reader's transport does without its engine, if it was asked and its time came. */
    void obeyIfDue() {
        if (asked && owner.faults().obeys(owner.fabric().nanoTime() - askedNanos)) {
            if (owner.faults().feigns() && mapping != null) {
                mapping.deny(this);
            } else {
                lose("revoked by its owner");
            }
        }
    }

    private void unmapIfUnused() {
        if (mapping == null) {
            return;
        }
        List<ModelTransfer> transfers = owner.transfersWith(this);
        transfers.forEach(transfer -> transfer.breakOff(lostBecause()));
        if (transfers.stream().noneMatch(ModelTransfer::clings)) {
            unmap();
        }
    }

    private void unmap() {
        if (mapping != null) {
            mapping.unmap(this);
            mapping = null;
        }
    }

    /** Who maps the memory, for the owner's messages. */
    String holder() {
        return "agent " + owner.agentName();
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
            obeyIfDue();
            return lostBecause == null && !closed;
        }
    }

    @Override
    public Route route() {
        return Route.direct(owner.name());
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
            unmap();
            owner.forget(this);
        }
    }
}
