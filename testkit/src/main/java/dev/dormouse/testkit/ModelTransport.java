package dev.dormouse.testkit;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A transport without a network, exact where CPU transports are not: a registration that was not
 * renewed silently moves the old pages' bytes, on both ends; each registration has a new key; a key
 * that its owner dropped disconnects the reader that uses it.
 *
 * <p>{@link #faults} lets a test decide what goes wrong, and when.
 */
public final class ModelTransport implements KvTransport {
    private final ModelFabric fabric;
    private final String agentName;
    private final ModelMemory memory;
    private final long incarnation;
    private final ModelFaults faults;
    private final Set<ModelRegistration> registrations = new LinkedHashSet<>();
    private final Map<Long, ModelRegistration> registrationsByKey = new HashMap<>();
    private final Map<String, ModelPeer> peers = new HashMap<>();
    private final Set<ModelBlockList> lists = new LinkedHashSet<>();
    private final Set<ModelTransfer> transfers = new LinkedHashSet<>();
    private final ModelInbox inbox;
    private long readsPosted;
    private long writesPosted;
    private int preparedLoads;
    private boolean closed;

    ModelTransport(ModelFabric fabric, String agentName, ModelMemory memory) {
        this.fabric = fabric;
        this.agentName = agentName;
        this.memory = memory;
        this.incarnation = fabric.nextIdentity();
        this.faults = new ModelFaults(fabric);
        this.inbox = new ModelInbox(faults);
    }

    /** What goes wrong, and how slow it is. */
    public ModelFaults faults() {
        return faults;
    }

    /** The transport finds all its peers disconnected, as after a network fault. */
    public void disconnectPeers() {
        synchronized (fabric) {
            peers.values().forEach(ModelPeer::disconnect);
        }
    }

    /**
     * Transfers that would never complete fail from now on, as when a peer's process ends at last.
     */
    public void failStuckReads() {
        synchronized (fabric) {
            transfers.forEach(ModelTransfer::giveUp);
        }
    }

    /** What is held now. */
    public ModelCounts counts() {
        synchronized (fabric) {
            return new ModelCounts(
                    registrations.size(), lists.size(), peers.size(), transfers.size());
        }
    }

    /** How many writes were ever posted. */
    public long writesPosted() {
        synchronized (fabric) {
            return writesPosted;
        }
    }

    /** How many reads were ever posted. */
    public long readsPosted() {
        synchronized (fabric) {
            return readsPosted;
        }
    }

    @Override
    public String name() {
        return isMapped() ? "mapped-model" : "model";
    }

    @Override
    public String agentName() {
        return agentName;
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        synchronized (fabric) {
            requireOpen();
            faults.beforeRegistration();
            ModelRegistration registration = new ModelRegistration(this, ranges, memory);
            registrations.add(registration);
            registration
                    .sections()
                    .forEach(section -> registrationsByKey.put(section.key(), registration));
            return registration;
        }
    }

    @Override
    public TransportMetadata metadata() {
        synchronized (fabric) {
            requireOpen();
            List<ModelPeer.RemoteSection> sections = new ArrayList<>();
            for (ModelRegistration registration : registrations) {
                for (ModelRegistration.Section section : registration.sections()) {
                    sections.add(
                            new ModelPeer.RemoteSection(
                                    section.key(),
                                    section.range().address(),
                                    section.range().lengthBytes()));
                }
            }
            byte[] told = new ModelMetadata(agentName, incarnation, sections).encode();
            return isMapped()
                    ? TransportMetadata.ofSameHost(told)
                    : TransportMetadata.ofAgent(told);
        }
    }

    @Override
    public void prepareLoad(TransportMetadata metadata) {
        synchronized (fabric) {
            preparedLoads++;
        }
    }

    /** How many loads were prepared; nothing else comes of it. */
    public int preparedLoads() {
        synchronized (fabric) {
            return preparedLoads;
        }
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        synchronized (fabric) {
            requireOpen();
            ModelMetadata decoded =
                    ModelMetadata.decode(isMapped() ? metadata.sameHost() : metadata.agent());
            faults.beforeLoad();
            if (peers.containsKey(decoded.agentName())) {
                throw new PeerLoadedException(decoded.agentName());
            }
            ModelPeer peer =
                    new ModelPeer(
                            this,
                            decoded.agentName(),
                            decoded.incarnation(),
                            decoded.sections(),
                            isMapped() ? ModelMapping.of(this, decoded) : null);
            peers.put(peer.agentName(), peer);
            return peer;
        }
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        synchronized (fabric) {
            requireOpen();
            faults.beforePreparation();
            List<ModelBlockList.LocalBlock> blocks = new ArrayList<>();
            Set<ModelRegistration> used = new LinkedHashSet<>();
            ModelBlockList.forEachBlock(
                    rows,
                    (address, bytes) -> {
                        for (ModelRegistration registration : registrations) {
                            ModelRegistration.Section section =
                                    registration.covering(address, bytes);
                            if (section != null) {
                                used.add(registration);
                                blocks.add(new ModelBlockList.LocalBlock(section, address, bytes));
                                return true;
                            }
                        }
                        return false;
                    });
            return remember(ModelBlockList.local(this, blocks, List.copyOf(used)));
        }
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        synchronized (fabric) {
            requireOpen();
            faults.beforePreparation();
            ModelPeer loaded = own(peer);
            List<ModelBlockList.RemoteBlock> blocks = new ArrayList<>();
            ModelBlockList.forEachBlock(
                    rows,
                    (address, bytes) -> {
                        ModelPeer.RemoteSection section = loaded.covering(address, bytes);
                        return section != null
                                && blocks.add(
                                        new ModelBlockList.RemoteBlock(
                                                section.key(), address, bytes));
                    });
            return remember(ModelBlockList.remote(this, blocks, loaded));
        }
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        synchronized (fabric) {
            ModelTransfer transfer =
                    post(false, local, localIndices, remote, remoteIndices, notification);
            readsPosted++;
            return transfer;
        }
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        synchronized (fabric) {
            ModelTransfer transfer =
                    post(true, local, localIndices, remote, remoteIndices, notification);
            writesPosted++;
            return transfer;
        }
    }

    private ModelTransfer post(
            boolean writes,
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        requireOpen();
        ModelBlockList ours = (ModelBlockList) local;
        ModelBlockList theirs = (ModelBlockList) remote;
        ours.requireUsable(this, false);
        theirs.requireUsable(this, true);
        ModelBlockList.requireIndices(ours, localIndices, theirs, remoteIndices);
        ModelFault fault = faults.nextTransfer();
        ModelPeer peer = Objects.requireNonNull(theirs.peer());
        if (fault instanceof ModelFault.FailPost || peer.reach() == null) {
            throw new TransportException(
                    "transfer with "
                            + peer.agentName()
                            + (fault instanceof ModelFault.FailPost
                                    ? ": injected fault"
                                    : ": " + peer.lostBecause()));
        }
        ModelTransfer transfer =
                new ModelTransfer(
                        this,
                        writes,
                        ours,
                        localIndices,
                        theirs,
                        remoteIndices,
                        notification,
                        fault,
                        faults.transferDelayNanos());
        transfers.add(transfer);
        return transfer;
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        synchronized (fabric) {
            requireOpen();
            faults.beforeNotify();
            ModelTransport target = own(peer).reach();
            if (target == null) {
                throw new TransportException(
                        "notify " + peer.agentName() + ": " + own(peer).lostBecause());
            }
            target.deliver(new PeerMessage(agentName, message.clone()));
        }
    }

    @Override
    public List<PeerMessage> messages() {
        synchronized (fabric) {
            requireOpen();
            return inbox.take(fabric.nanoTime());
        }
    }

    @Override
    public long rejectedMessages() {
        synchronized (fabric) {
            return inbox.rejected();
        }
    }

    @Override
    public void close() {
        synchronized (fabric) {
            if (!closed) {
                fabric.leave(this);
                die();
            }
        }
    }

    private boolean isMapped() {
        return fabric.addressing() == Addressing.MAPPED;
    }

    ModelMemory memory() {
        return memory;
    }

    /** The transfers with a peer that were not released. */
    List<ModelTransfer> transfersWith(ModelPeer peer) {
        return transfers.stream().filter(transfer -> transfer.isWith(peer)).toList();
    }

    ModelFabric fabric() {
        return fabric;
    }

    long incarnation() {
        return incarnation;
    }

    /** The registration of which a key is, or null. */
    @Nullable ModelRegistration registration(long key) {
        return registrationsByKey.get(key);
    }

    ModelRegistration.@Nullable Section section(long key) {
        ModelRegistration registration = registration(key);
        return registration == null ? null : registration.section(key);
    }

    void deliver(PeerMessage message) {
        inbox.deliver(message, fabric.nanoTime());
    }

    void die() {
        closed = true;
        faults.failListCloses(0); // a process's end fails at nothing
        faults.failPeerCloses(0);
        List.copyOf(transfers).forEach(ModelTransfer::end);
        List.copyOf(lists).forEach(ModelBlockList::close);
        List.copyOf(peers.values()).forEach(ModelPeer::close);
        List.copyOf(registrations).forEach(ModelRegistration::end);
        inbox.clear();
    }

    void forget(ModelRegistration registration) {
        registrations.remove(registration);
        for (ModelRegistration.Section section : registration.sections()) {
            registrationsByKey.remove(section.key());
            memory.unpin(section.pages());
        }
    }

    void forget(ModelPeer peer) {
        peers.remove(peer.agentName());
    }

    void forget(ModelBlockList list) {
        lists.remove(list);
    }

    void forget(ModelTransfer transfer) {
        transfers.remove(transfer);
    }

    private ModelPeer own(RemotePeer peer) {
        if (!(peer instanceof ModelPeer loaded)
                || loaded.isClosed()
                || peers.get(loaded.agentName()) != loaded) {
            throw new IllegalStateException("peer " + peer.agentName() + " is not loaded here");
        }
        return loaded;
    }

    private ModelBlockList remember(ModelBlockList list) {
        lists.add(list);
        return list;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("transport " + agentName + " is closed");
        }
    }
}
