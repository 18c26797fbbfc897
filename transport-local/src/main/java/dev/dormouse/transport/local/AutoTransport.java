package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An agent with two ways to its peers: a near one, which reaches some of them, and a far one for
 * the others. It tells both in its metadata, and loads each peer over the near way if that leads
 * there; a peer's {@link RemotePeer#route} says which it is, and why it is not the near one.
 */
public final class AutoTransport implements KvTransport {
    private final KvTransport near;
    private final KvTransport far;
    private final Map<String, AutoPeer> peers = new HashMap<>();
    private final List<PeerMessage> arrived = new ArrayList<>();
    private boolean closed;

    /**
     * An agent that owns both transports.
     *
     * @throws IllegalArgumentException if their agents have different names; both stay open
     */
    public AutoTransport(KvTransport near, KvTransport far) {
        if (!near.agentName().equals(far.agentName())) {
            throw new IllegalArgumentException(
                    "transports of one agent: the names differ: "
                            + near.agentName()
                            + " and "
                            + far.agentName());
        }
        this.near = near;
        this.far = far;
    }

    @Override
    public String name() {
        return "auto";
    }

    @Override
    public String agentName() {
        return near.agentName();
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        return AutoRegistration.register(near, far, ranges);
    }

    @Override
    public TransportMetadata metadata() {
        return new TransportMetadata(far.metadata().agent(), near.metadata().sameHost());
    }

    @Override
    public void prepareLoad(TransportMetadata metadata) {
        near.prepareLoad(metadata);
    }

    /**
     * Loads a peer over the near way if that can be. It does not try the far one for memory that a
     * peer does not give: see {@link MemoryWithdrawnException}.
     */
    @Override
    public RemotePeer load(TransportMetadata metadata) {
        peers.values().removeIf(AutoPeer::isClosed);
        String detour;
        if (metadata.sameHost().length == 0) {
            detour = "the peer does not offer it";
        } else {
            try {
                return remember(near, near.load(metadata), "");
            } catch (MemoryWithdrawnException | PeerLoadedException e) {
                throw e;
            } catch (TransportException e) {
                if (metadata.agent().length == 0) {
                    throw e;
                }
                detour = String.valueOf(e.getMessage());
            }
        }
        return remember(far, far.load(metadata), "not " + near.name() + ": " + detour);
    }

    private AutoPeer remember(KvTransport over, RemotePeer loaded, String detour) {
        AutoPeer peer = new AutoPeer(over, loaded, new Route(over.name(), detour));
        if (peers.containsKey(peer.agentName())) { // over the other way
            PeerLoadedException refusal = new PeerLoadedException(peer.agentName());
            try {
                loaded.close();
            } catch (TransportException e) {
                refusal.addSuppressed(e);
            }
            throw refusal;
        }
        peers.put(peer.agentName(), peer);
        return peer;
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        return AutoBlockList.local(this, List.of(near, far), rows);
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        AutoPeer own = own(peer);
        return AutoBlockList.remote(this, own.over(), own.over().prepareRemote(own.inner(), rows));
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        AutoBlockList here = AutoBlockList.of(local);
        AutoBlockList there = AutoBlockList.of(remote);
        KvTransport over = there.over();
        return new AutoTransfer(
                here,
                there,
                over.read(
                        here.part(over),
                        localIndices,
                        there.part(over),
                        remoteIndices,
                        notification));
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        AutoBlockList here = AutoBlockList.of(local);
        AutoBlockList there = AutoBlockList.of(remote);
        KvTransport over = there.over();
        return new AutoTransfer(
                here,
                there,
                over.write(
                        here.part(over),
                        localIndices,
                        there.part(over),
                        remoteIndices,
                        notification));
    }

    @Override
    public void wakeWith(Runnable wake) {
        near.wakeWith(wake);
        far.wakeWith(wake);
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        AutoPeer own = own(peer);
        own.over().notify(own.inner(), message);
    }

    @Override
    public List<PeerMessage> messages() {
        arrived.addAll(near.messages()); // kept, if the far ones cannot be taken
        arrived.addAll(far.messages());
        List<PeerMessage> taken = List.copyOf(arrived);
        arrived.clear();
        return taken;
    }

    @Override
    public long rejectedMessages() {
        return near.rejectedMessages() + far.rejectedMessages();
    }

    @Override
    public void close() {
        closed = true;
        try {
            near.close();
        } catch (RuntimeException e) {
            try {
                far.close();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
        far.close();
    }

    boolean isClosed() {
        return closed;
    }

    private AutoPeer own(RemotePeer peer) {
        if (!(peer instanceof AutoPeer own)
                || own.isClosed()
                || peers.get(own.agentName()) != own) {
            throw new IllegalStateException("peer " + peer.agentName() + " is not loaded here");
        }
        return own;
    }
}
