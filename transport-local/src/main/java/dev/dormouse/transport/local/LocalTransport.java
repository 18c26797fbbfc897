package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaException;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A KV transport between processes of one host, which map each other's pages and copy at the speed
 * of memory.
 *
 * <p>A mapping does not follow a remap: who maps a sleeper's pages keeps them from the machine, and
 * reads old bytes. So the owner takes its pages back before it sleeps ({@link
 * Registration#revoke}); the reader unmaps them and only then says so. Whoever has neither said so
 * nor ended is named, and the registration cannot be closed.
 *
 * <p>Peers are processes of the same user, or of users that are allowed; they are trusted to unmap
 * what they say they have unmapped. Threads serve peers and copy while the owner of this object
 * computes; a device copies by itself, but its peer is told no sooner than the transfer is polled.
 */
public final class LocalTransport implements KvTransport {
    /** The transport's name in settings, reports and metrics. */
    static final String NAME = "local";

    private final LocalTransportOptions options;
    private final HostIdentity host;
    private final ReaderSide readerSide;
    private final Wire wire = new Wire();
    private final SocketLoop loop;
    private final OwnerSide ownerSide;
    private final @Nullable DeviceCopier copier;
    private final CopyThreads copies;
    private final Set<LocalRegistration> registrations = new LinkedHashSet<>();
    private final Map<String, LocalPeer> peers = new HashMap<>();
    private final Set<LocalTransfer> unreleased = new LinkedHashSet<>();
    private volatile Runnable wake = () -> {};
    private volatile boolean closed;

    private LocalTransport(LocalTransportOptions options, Limits limits) {
        this.options = options;
        host = HostIdentity.ofThisProcess();
        Set<Integer> users = new HashSet<>(options.allowedUids());
        users.add(UnixSocket.user());
        loop = new SocketLoop();
        try {
            ownerSide = new OwnerSide(options.agentName(), users, limits, wire, loop);
            LocalDevice device = options.device();
            copier = device == null ? null : new DeviceCopier(device);
        } catch (RuntimeException e) {
            loop.close();
            wire.close();
            throw e;
        }
        copies = CopyThreads.forProcessors(Runtime.getRuntime().availableProcessors());
        readerSide =
                new ReaderSide(
                        options.agentName(), users, limits, copier, wire, loop, copies::populate);
    }

    /**
     * Starts an agent.
     *
     * @throws TransportException if the kernel or the device refuses, or this host is not told
     */
    public static LocalTransport open(LocalTransportOptions options) {
        return open(options, Limits.USUAL);
    }

    static LocalTransport open(LocalTransportOptions options, Limits limits) {
        try {
            return new LocalTransport(options, limits);
        } catch (LibcException | CudaException e) {
            throw new TransportException(
                    "open agent " + options.agentName() + " failed: " + e.getMessage(), e);
        }
    }

    /**
     * Whether the metadata are of an agent that {@link #load} can reach: one of this transport, on
     * this start of this host, in this network name space. It may have ended.
     *
     * @param metadata untrusted bytes
     */
    public boolean isSameHost(TransportMetadata metadata) {
        try {
            return LocalMetadata.decode(metadata.sameHost()).host().equals(host);
        } catch (TransportException e) {
            return false;
        }
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String agentName() {
        return options.agentName();
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        requireOpen("register");
        if (ranges.isEmpty()) {
            throw new TransportException("register failed: no range is named");
        }
        SharedBacking backing = SharedBacking.of(ranges, options.source(), options.access());
        try {
            LocalRegistration registration = new LocalRegistration(ownerSide, ranges, backing);
            ownerSide.add(registration);
            registrations.removeIf(LocalRegistration::isClosed);
            registrations.add(registration);
            return registration;
        } catch (RuntimeException e) {
            backing.close();
            throw e;
        }
    }

    @Override
    public TransportMetadata metadata() {
        requireOpen("metadata");
        return TransportMetadata.ofSameHost(ownerSide.metadata(host).encode());
    }

    @Override
    public void prepareLoad(TransportMetadata metadata) {
        if (!closed && isSameHost(metadata)) {
            readerSide.prepare(LocalMetadata.decode(metadata.sameHost()));
        }
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        requireOpen("load");
        LocalMetadata told = LocalMetadata.decode(metadata.sameHost());
        if (!told.host().equals(host)) {
            throw new TransportException(
                    "load peer %s failed: it is on another host, in another network name space, or from before a reboot"
                            .formatted(told.agentName()));
        }
        peers.values().removeIf(LocalPeer::isClosed);
        if (peers.containsKey(told.agentName())) {
            throw new PeerLoadedException(told.agentName());
        }
        LocalPeer peer = readerSide.load(told);
        peers.put(told.agentName(), peer);
        return peer;
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        requireOpen("prepare local blocks");
        Set<LocalRegistration> used = new LinkedHashSet<>();
        long[] addresses = new long[rows.size()];
        for (int i = 0; i < addresses.length; i++) {
            BlockRow row = rows.get(i);
            requireOwnDevice(row);
            used.add(registration(row));
            addresses[i] = row.address();
        }
        BlockTable table = table(rows, addresses);
        return new LocalBlockList(this, table, rows.getFirst().kind(), List.copyOf(used), null);
    }

    private LocalRegistration registration(BlockRow row) {
        return registrations.stream()
                .filter(each -> each.covers(row))
                .findFirst()
                .orElseThrow(
                        () ->
                                new TransportException(
                                        "prepare local blocks failed: %s is not in one range of registered memory"
                                                .formatted(row)));
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        requireOpen("prepare remote blocks");
        LocalPeer own = own(peer);
        own.requireUsable("prepare remote blocks");
        long[] addresses = new long[rows.size()];
        for (int i = 0; i < addresses.length; i++) {
            BlockRow row = rows.get(i);
            addresses[i] =
                    row.kind() == own.mapping().kind()
                            ? own.mapping().locate(row.address(), row.spanBytes())
                            : 0;
            if (addresses[i] == 0) {
                throw new TransportException(
                        "prepare remote blocks failed: %s is not in one range of peer %s"
                                .formatted(row, own.agentName()));
            }
        }
        return new LocalBlockList(
                this, table(rows, addresses), own.mapping().kind(), List.of(), own);
    }

    /** Where device memory is, the agent's own device must be: its kernel writes there. */
    private void requireOwnDevice(BlockRow row) {
        if (row.kind() == MemoryKind.VRAM
                && (copier == null || row.deviceId() != copier.context().device().ordinal())) {
            throw new TransportException(
                    "prepare local blocks failed: %s is not of this agent's device, %s"
                            .formatted(row, copier == null ? "it has none" : copier.context()));
        }
    }

    private static BlockTable table(List<BlockRow> rows, long[] addresses) {
        try {
            if (rows.isEmpty()) {
                throw new IllegalArgumentException("prepare blocks: no row is named");
            }
            return new BlockTable(rows, addresses);
        } catch (ArithmeticException e) {
            throw new TransportException("prepare blocks failed: the rows have too many", e);
        }
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return post(false, local, localIndices, remote, remoteIndices, notification);
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return post(true, local, localIndices, remote, remoteIndices, notification);
    }

    private Transfer post(
            boolean writes,
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        long startNanos = System.nanoTime();
        String operation = writes ? "write to" : "read from";
        requireOpen(operation);
        LocalBlockList ours = own(local);
        LocalBlockList theirs = own(remote);
        LocalPeer peer = theirs.peer();
        if (ours.peer() != null || peer == null) {
            throw new IllegalArgumentException(
                    operation + ": needs a local and a remote list, in this order");
        }
        requireFits(notification);
        BlockPairs pairs =
                new BlockPairs(ours.blocks(), localIndices, theirs.blocks(), remoteIndices);
        peer.requireUsable(operation);
        if (writes && !peer.mapping().isWritable()) {
            throw new TransportException(
                    "write to peer %s refused: its owner lets peers read only"
                            .formatted(peer.agentName()));
        }
        requireSameKind(ours, theirs);
        LocalTransfer.Request request =
                new LocalTransfer.Request(
                        operation,
                        this,
                        ours,
                        theirs,
                        peer,
                        Frame.ofMessage(notification),
                        startNanos);
        return switch (ours.kind()) {
            case DRAM -> {
                HostTransfer transfer = new HostTransfer(request, HostCopy.of(writes, pairs));
                unreleased.add(transfer);
                transfer.markPosted();
                copies.submit(transfer);
                yield transfer;
            }
            case VRAM -> {
                DeviceTransfer transfer = new DeviceTransfer(request);
                unreleased.add(transfer);
                transfer.start(writes, pairs, Objects.requireNonNull(copier));
                yield transfer;
            }
        };
    }

    private static void requireSameKind(LocalBlockList ours, LocalBlockList theirs) {
        if (ours.kind() != theirs.kind()) {
            throw new TransportException(
                    "transfer refused: local blocks are %s, remote ones %s"
                            .formatted(ours.kind(), theirs.kind()));
        }
    }

    @Override
    public void wakeWith(Runnable waking) {
        wake = waking;
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        requireOpen("notify");
        LocalPeer own = own(peer);
        own.requireUsable("notify");
        requireFits(message);
        switch (own.send(Frame.ofMessage(message))) {
            case YES -> {}
            case FULL ->
                    throw new TransportException(
                            "notify peer %s failed: more than %d bytes wait, its process may be stopped"
                                    .formatted(own.agentName(), Connection.MAX_WAITING_BYTES));
            case CLOSED ->
                    throw new TransportException(
                            "notify peer %s failed: it is disconnected".formatted(own.agentName()));
        }
    }

    @Override
    public List<PeerMessage> messages() {
        requireOpen("messages");
        return ownerSide.inbox().take();
    }

    @Override
    public long rejectedMessages() {
        return ownerSide.inbox().rejected();
    }

    /** Unmaps all peers' pages, and takes this agent's from them by ending their connections. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        copies.close();
        readerSide.close();
        List.copyOf(unreleased).forEach(LocalTransfer::endWithAgent);
        peers.clear();
        ownerSide.close();
        loop.close();
        wire.close();
        closeCopier();
    }

    private void closeCopier() {
        if (copier != null) {
            copier.close();
        }
    }

    /** A transfer has ended while its user did something else. */
    void wakeUser() {
        wake.run();
    }

    /** Whether transfers are to be given up. */
    boolean isEnding() {
        return closed;
    }

    void forget(LocalTransfer transfer) {
        unreleased.remove(transfer);
    }

    private void requireOpen(String operation) {
        if (closed) {
            throw new IllegalStateException(
                    "%s refused: agent %s is closed".formatted(operation, agentName()));
        }
    }

    private static void requireFits(byte[] message) {
        if (message.length > Inbox.MAX_MESSAGE_BYTES) {
            throw new TransportException(
                    "message refused: %d bytes, at most %d are possible"
                            .formatted(message.length, Inbox.MAX_MESSAGE_BYTES));
        }
    }

    private static LocalPeer own(RemotePeer peer) {
        if (peer instanceof LocalPeer own) {
            return own;
        }
        throw new IllegalArgumentException("the peer belongs to another transport: " + peer);
    }

    private LocalBlockList own(BlockList blocks) {
        if (blocks instanceof LocalBlockList own) {
            own.requireOpen(this);
            return own;
        }
        throw new IllegalArgumentException(
                "the block list belongs to another transport: " + blocks);
    }
}
