package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One NIXL agent: it registers local memory, knows peers by their metadata, and moves blocks
 * between the two.
 *
 * <p>It owns all that it makes. Built upon each other are registrations, prepared lists and
 * transfers, and on the other side remote agents, their lists and transfers; each closes only when
 * nothing is built on it. {@link #close()} closes all of it in the right order.
 *
 * <p>Safe for all threads: one lock per agent covers every call of it and of its objects. Calls may
 * block for milliseconds, loading metadata longest, so they do not belong on virtual threads.
 */
public final class NixlAgent implements AutoCloseable {
    /** How many closed transfers may wait for their end. */
    public static final int MAX_ABANDONED = 4096;

    final Object lock = new Object();
    final NativeAgent nativeAgent;
    final NativeTransfers transfers;
    final NativeNotifications notifications;

    private final NixlAgentConfig config;
    private final NativePlugins plugins;
    private final RangeIndex registered = new RangeIndex();
    private final Map<String, MemorySegment> backends = new LinkedHashMap<>();
    private final Set<NixlObject> objects = new LinkedHashSet<>();
    private final Set<Transfer> abandoned = new LinkedHashSet<>();
    private long lastId;
    private boolean open = true;

    private NixlAgent(NixlAgentConfig config, NativeAgent nativeAgent) {
        this.config = config;
        this.nativeAgent = nativeAgent;
        this.plugins = new NativePlugins(nativeAgent);
        this.transfers = new NativeTransfers(nativeAgent);
        this.notifications = new NativeNotifications(nativeAgent, config.maxNotificationBytes());
    }

    /**
     * Creates an agent without backends.
     *
     * @throws dev.dormouse.foreign.NativeLibraryException when NIXL is not there, with the remedy
     */
    public static NixlAgent create(NixlAgentConfig config) {
        NativeAgent nativeAgent = NativeAgent.create(config);
        try {
            return new NixlAgent(config, nativeAgent);
        } catch (RuntimeException | Error e) {
            nativeAgent.destroy();
            throw e;
        }
    }

    /** The agent's name. */
    public String name() {
        return config.name();
    }

    /** The settings. */
    public NixlAgentConfig config() {
        return config;
    }

    /** Names of the plugins that can be loaded, as {@code UCX}. */
    public List<String> availablePlugins() {
        synchronized (lock) {
            requireOpen("list plugins");
            return plugins.available();
        }
    }

    /** A plugin's parameters with their defaults, and what it serves. */
    public BackendOptions pluginOptions(String plugin) {
        synchronized (lock) {
            requireOpen("get plugin options");
            return plugins.pluginOptions(plugin);
        }
    }

    /**
     * Puts a plugin to work, for the life of the agent. UCX takes about half a second.
     *
     * @param parameters the plugin's, as {@code engine_config=RCACHE_ENABLE=n} for UCX
     * @throws NixlException when NIXL refuses, or when the backend took the JVM's signal handlers
     */
    public Backend createBackend(String plugin, Map<String, String> parameters) {
        synchronized (lock) {
            requireOpen("create backend");
            if (backends.containsKey(plugin)) {
                throw new IllegalStateException(
                        "create backend refused: agent " + name() + " has " + plugin + " already");
            }
            SignalHandlers before = SignalHandlers.current();
            MemorySegment backend = plugins.create(plugin, parameters);
            backends.put(plugin, backend);
            before.requireUnchanged(name(), plugin);
            return new Backend(plugin, plugins.backendOptions(backend, plugin));
        }
    }

    /**
     * Registers memory with every backend that serves its kind.
     *
     * @param type {@link MemoryType#DRAM} or {@link MemoryType#VRAM}
     * @param ranges at least one; overlapping neither each other nor what is registered
     */
    public Registration register(MemoryType type, List<MemoryRange> ranges) {
        synchronized (lock) {
            requireOpen("register memory");
            return Registration.create(this, registered, type, List.copyOf(ranges));
        }
    }

    /** What is registered now of one kind of memory. */
    public List<RegisteredRange> registered(MemoryType type) {
        synchronized (lock) {
            return registered.ranges(type);
        }
    }

    /** What peers need to reach everything registered now. Empty of memory is fine. */
    public byte[] localMetadata() {
        synchronized (lock) {
            requireOpen("get local metadata");
            return nativeAgent.localMetadata();
        }
    }

    /**
     * What peers that know this agent need to reach these registrations: keys without connection
     * information, for {@link RemoteAgent#loadSections}.
     *
     * @param registrations of one kind of memory, at least one
     */
    public byte[] partialMetadata(List<Registration> registrations) {
        synchronized (lock) {
            requireOpen("get partial local metadata");
            return Registration.partialMetadata(this, List.copyOf(registrations));
        }
    }

    /**
     * Makes a peer known. Never for a peer that is loaded already: over RDMA NIXL may refuse it and
     * destroys the peer in doing so; close it first, or use {@link RemoteAgent#loadSections}.
     *
     * <p>The framing is checked; keys and addresses inside are UCX's own and are trusted, so
     * metadata should come from authenticated peers.
     *
     * @param metadata what the peer's {@link #localMetadata()} returned
     * @throws PeerLoadedException when the peer is loaded
     * @throws MetadataException when it is malformed or has no backend in common
     * @throws NixlStatusException when NIXL refuses; it may not accept the peer again then
     */
    public RemoteAgent load(byte[] metadata) {
        synchronized (lock) {
            requireOpen("load remote metadata");
            return RemoteAgent.load(this, metadata);
        }
    }

    /** The loaded peer of that name. */
    public Optional<RemoteAgent> remote(String peer) {
        synchronized (lock) {
            return objects.stream()
                    .filter(RemoteAgent.class::isInstance)
                    .map(RemoteAgent.class::cast)
                    .filter(remote -> remote.name().equals(peer))
                    .findFirst();
        }
    }

    /**
     * Prepares local blocks for transfers by index.
     *
     * @throws IllegalArgumentException when a block is not inside one registration
     */
    public LocalList prepare(BlockList blocks) {
        synchronized (lock) {
            requireOpen("prepare blocks");
            List<Registration> owners = registered.owners(blocks);
            MemorySegment handle = transfers.prepare(null, blocks);
            return new LocalList(this, owners, handle, blocks.lengths());
        }
    }

    /**
     * Makes a transfer between pairs of prepared blocks, {@code localIndices[i]} with {@code
     * remoteIndices[i]}. Neighbours that are dense in memory on both sides are merged by NIXL.
     *
     * @throws IllegalArgumentException when an index is out of range or lengths differ
     * @throws PeerLostException when the peer went away
     */
    public Transfer createTransfer(
            TransferOperation operation,
            LocalList local,
            int[] localIndices,
            RemoteList remote,
            int[] remoteIndices) {
        return makeTransfer(operation, local, localIndices, remote, remoteIndices, null);
    }

    /**
     * As above; the peer gets {@code notification} when all bytes have arrived.
     *
     * @param notification at most {@link NixlAgentConfig#maxNotificationBytes()}
     */
    public Transfer createTransfer(
            TransferOperation operation,
            LocalList local,
            int[] localIndices,
            RemoteList remote,
            int[] remoteIndices,
            byte[] notification) {
        checkNotification(notification);
        return makeTransfer(operation, local, localIndices, remote, remoteIndices, notification);
    }

    /**
     * Makes a transfer between two lists that are used once, pair by pair.
     *
     * @throws IllegalArgumentException when counts or lengths differ, or a local block is not
     *     inside one registration
     * @throws PeerLostException when the peer went away
     */
    public Transfer createTransfer(
            TransferOperation operation, BlockList local, RemoteAgent peer, BlockList remote) {
        return makeTransfer(operation, local, peer, remote, null);
    }

    /**
     * As above; the peer gets {@code notification} when all bytes have arrived.
     *
     * @param notification at most {@link NixlAgentConfig#maxNotificationBytes()}
     */
    public Transfer createTransfer(
            TransferOperation operation,
            BlockList local,
            RemoteAgent peer,
            BlockList remote,
            byte[] notification) {
        checkNotification(notification);
        return makeTransfer(operation, local, peer, remote, notification);
    }

    private Transfer makeTransfer(
            TransferOperation operation,
            BlockList local,
            RemoteAgent peer,
            BlockList remote,
            byte @Nullable [] notification) {
        synchronized (lock) {
            peer.requireUsableBy(this, "create transfer");
            peer.requireReachable("create transfer");
            retryReleases();
            long totalBytes = Lengths.checkPairs(local.lengths(), remote.lengths());
            List<NixlObject> parents = new ArrayList<>(registered.owners(local));
            parents.add(peer);
            try {
                MemorySegment request =
                        transfers.create(operation, local, remote, peer.name(), notification);
                return new Transfer(operation, peer, parents, request, totalBytes);
            } catch (NixlStatusException e) {
                peer.noteFailure();
                throw e;
            }
        }
    }

    /**
     * Takes the messages that have arrived, and drives all connections on when there is no progress
     * thread.
     *
     * @return in no order across senders; each sender's in the order of arrival
     */
    public List<Notification> drainNotifications() {
        synchronized (lock) {
            requireOpen("drain notifications");
            retryReleases();
            return notifications.drain();
        }
    }

    /** How many messages were dropped: too long, or from a sender without a possible name. */
    public long rejectedNotifications() {
        synchronized (lock) {
            return notifications.rejected();
        }
    }

    /**
     * Tries again to release transfers that were closed while active. Making transfers and draining
     * notifications do so too.
     *
     * @return how many are left
     */
    public int retryReleases() {
        synchronized (lock) {
            requireOpen("retry releases");
            if (!abandoned.isEmpty()) {
                List.copyOf(abandoned).forEach(Transfer::tryRelease);
            }
            return abandoned.size();
        }
    }

    /**
     * Frees everything in order: transfers, prepared lists, remote agents, registrations, backends,
     * the agent. Transfers in progress are cut off, so registered memory must stay mapped until
     * this returns. Closing twice is fine.
     *
     * @throws NixlException the first failure, with the others suppressed; all steps were taken
     */
    @Override
    public void close() {
        synchronized (lock) {
            if (!open) {
                return;
            }
            open = false;
            Cleanup cleanup = new Cleanup();
            freeAll(Transfer.class, cleanup);
            freeAll(PreparedList.class, cleanup);
            freeAll(RemoteAgent.class, cleanup);
            freeAll(Registration.class, cleanup);
            cleanup.run(transfers::free);
            cleanup.run(notifications::free);
            backends.values().forEach(backend -> cleanup.run(() -> plugins.free(backend)));
            cleanup.run(nativeAgent::destroy);
            cleanup.rethrow();
        }
    }

    void requireOpen(String operation) {
        if (!open) {
            throw new IllegalStateException(operation + " refused: agent " + name() + " is closed");
        }
    }

    Set<String> backends() {
        return backends.keySet();
    }

    AgentMetadata readMetadata(byte[] metadata) {
        return MetadataReader.read(name(), metadata, config.maxMetadataBytes());
    }

    void checkNotification(byte[] message) {
        if (message.length > config.maxNotificationBytes()) {
            throw new IllegalArgumentException(
                    "notification refused: bytes=%d are more than %d"
                            .formatted(message.length, config.maxNotificationBytes()));
        }
    }

    void abandon(Transfer transfer) {
        if (abandoned.size() >= MAX_ABANDONED) {
            throw new IllegalStateException(
                    "close "
                            + transfer
                            + " refused: "
                            + MAX_ABANDONED
                            + " closed transfers of agent "
                            + name()
                            + " are still active");
        }
        abandoned.add(transfer);
    }

    long attach(NixlObject object) {
        objects.add(object);
        return ++lastId;
    }

    void detach(NixlObject object) {
        objects.remove(object);
        if (object instanceof Transfer transfer) {
            abandoned.remove(transfer);
        }
    }

    private Transfer makeTransfer(
            TransferOperation operation,
            LocalList local,
            int[] localIndices,
            RemoteList remote,
            int[] remoteIndices,
            byte @Nullable [] notification) {
        synchronized (lock) {
            local.requireUsableBy(this, "create transfer");
            remote.requireUsableBy(this, "create transfer");
            RemoteAgent peer = remote.owner();
            peer.requireReachable("create transfer");
            retryReleases();
            long totalBytes =
                    Lengths.checkPairs(local.lengths, localIndices, remote.lengths, remoteIndices);
            try {
                MemorySegment request =
                        transfers.make(
                                operation,
                                local.handle,
                                localIndices,
                                remote.handle,
                                remoteIndices,
                                peer.name(),
                                notification);
                return new Transfer(operation, peer, List.of(local, remote), request, totalBytes);
            } catch (NixlStatusException e) {
                peer.noteFailure();
                throw e;
            }
        }
    }

    private void freeAll(Class<? extends NixlObject> kind, Cleanup cleanup) {
        for (NixlObject object : List.copyOf(objects)) {
            if (kind.isInstance(object)) {
                cleanup.run(object::free);
                object.detach();
            }
        }
    }
}
