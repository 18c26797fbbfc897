package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.LocalList;
import dev.dormouse.nixl.MemoryType;
import dev.dormouse.nixl.NixlAgent;
import dev.dormouse.nixl.NixlAgentConfig;
import dev.dormouse.nixl.NixlException;
import dev.dormouse.nixl.RemoteAgent;
import dev.dormouse.nixl.RemoteList;
import dev.dormouse.nixl.TransferOperation;
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
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * A KV transport over one NVIDIA NIXL agent with one backend.
 *
 * <p>NIXL's progress thread is on, so that a peer can connect and be served while this rank
 * computes; its delay keeps it from spinning, which it does by default (0.88 of a core, measured
 * with 1.5.1).
 */
public final class NixlTransport implements KvTransport {
    /** The transport's name in settings, reports and metrics. */
    static final String NAME = "nixl";

    private static final Duration PROGRESS_DELAY = Duration.ofMillis(1);

    /** How long the end of reads is waited for before the agent ends. */
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(2);

    /** More peers than come back at any one time. */
    private static final int MAX_PARKED = 16;

    private final NixlAgent agent;
    private final ParkedPeers parked = new ParkedPeers(MAX_PARKED);
    private final Set<NixlTransfer> unreleased = new LinkedHashSet<>();

    private NixlTransport(NixlAgent agent) {
        this.agent = agent;
    }

    /**
     * Starts an agent with a random name, as vLLM does.
     *
     * @param backend the NIXL plugin, such as {@code UCX}
     * @param parameters the plugin's parameters, see {@link UcxSleepDefaults}
     * @throws TransportException if NIXL or the plugin cannot be started; the message has the
     *     remedy
     */
    public static NixlTransport open(String backend, Map<String, String> parameters) {
        return translated(
                () -> {
                    NixlAgent agent =
                            NixlAgent.create(
                                    NixlAgentConfig.builder(UUID.randomUUID().toString())
                                            .progressThread(true)
                                            .progressDelay(PROGRESS_DELAY)
                                            .telemetry(true)
                                            .build());
                    try {
                        agent.createBackend(backend, parameters);
                    } catch (RuntimeException e) {
                        agent.close();
                        throw e;
                    }
                    return new NixlTransport(agent);
                });
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String agentName() {
        return agent.name();
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        List<dev.dormouse.nixl.MemoryRange> segments = new ArrayList<>(ranges.size());
        for (MemoryRange range : ranges) {
            requireSameKind(ranges.getFirst().kind(), range.kind());
            segments.add(
                    new dev.dormouse.nixl.MemoryRange(
                            MemorySegment.ofAddress(range.address())
                                    .reinterpret(range.lengthBytes()),
                            range.deviceId()));
        }
        return translated(
                () ->
                        new NixlRegistration(
                                agent.register(type(ranges.getFirst().kind()), segments),
                                List.copyOf(ranges)));
    }

    @Override
    public TransportMetadata metadata() {
        return TransportMetadata.ofAgent(translated(agent::localMetadata));
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        byte[] bytes = metadata.agent().clone();
        if (bytes.length == 0) {
            throw new TransportException(
                    "load peer failed: it has no NIXL agent, so only processes of its host that"
                            + " use the same-host transport can load it");
        }
        RemoteAgent kept = parked.take(bytes);
        try {
            RemoteAgent loaded = kept == null ? translated(() -> loadAnew(bytes)) : kept;
            return new NixlPeer(loaded, bytes, parked);
        } catch (dev.dormouse.nixl.PeerLoadedException e) {
            // The name stands in the peer's bytes: that it is loaded already is not the caller's
            // mistake.
            PeerLoadedException loaded = new PeerLoadedException(e.peer());
            loaded.initCause(e);
            throw loaded;
        }
    }

    /** Loads a peer; one of the same name that nobody uses gives way. */
    private RemoteAgent loadAnew(byte[] metadata) {
        try {
            return agent.load(metadata);
        } catch (dev.dormouse.nixl.PeerLoadedException e) {
            if (!parked.drop(e.peer())) {
                throw e;
            }
            return agent.load(metadata);
        }
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        dev.dormouse.nixl.BlockList blocks = blocks(rows);
        try {
            return translated(() -> new NixlBlockList(agent.prepare(blocks)));
        } catch (IllegalArgumentException e) {
            throw new TransportException("prepare local blocks failed: " + e.getMessage(), e);
        }
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        try {
            dev.dormouse.nixl.BlockList blocks = blocks(rows);
            return translated(() -> new NixlBlockList(own(peer).prepare(blocks)));
        } catch (IllegalArgumentException e) { // the rows stand in the peer's bytes
            throw new TransportException("prepare remote blocks failed: " + e.getMessage(), e);
        }
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return post(
                TransferOperation.READ, local, localIndices, remote, remoteIndices, notification);
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return post(
                TransferOperation.WRITE, local, localIndices, remote, remoteIndices, notification);
    }

    private Transfer post(
            TransferOperation operation,
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        if (!(list(local) instanceof LocalList ours)
                || !(list(remote) instanceof RemoteList theirs)) {
            throw new IllegalArgumentException(
                    operation + ": needs a local and a remote list, in this order");
        }
        return translated(
                () -> {
                    dev.dormouse.nixl.Transfer transfer =
                            agent.createTransfer(
                                    operation,
                                    ours,
                                    localIndices,
                                    theirs,
                                    remoteIndices,
                                    notification);
                    transfer.post();
                    return new NixlTransfer(operation, transfer, unreleased);
                });
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        translated(
                () -> {
                    own(peer).notify(message);
                    return null;
                });
    }

    @Override
    public List<PeerMessage> messages() {
        return translated(
                () ->
                        agent.drainNotifications().stream()
                                .map(message -> new PeerMessage(message.agent(), message.bytes()))
                                .toList());
    }

    @Override
    public long rejectedMessages() {
        return agent.rejectedNotifications();
    }

    /**
     * Ends the agent; reads under way get a moment to end first. Over tcp a peer that still answers
     * a read when its reader goes away is ended by UCX ({@code ucp_get_req_handler} takes a failed
     * reply for fatal).
     */
    @Override
    public void close() {
        long startNanos = System.nanoTime();
        while (unreleased.stream().anyMatch(NixlTransfer::isUnderWay)
                && System.nanoTime() - startNanos < CLOSE_LIMIT.toNanos()) {
            LockSupport.parkNanos(PROGRESS_DELAY.toNanos());
        }
        unreleased.clear();
        parked.forget();
        translated(
                () -> {
                    agent.close();
                    return null;
                });
    }

    /** NIXL's failures are the transport's; wrong use by the caller stays what it is. */
    static <T extends @org.jspecify.annotations.Nullable Object> T translated(Supplier<T> action) {
        try {
            return action.get();
        } catch (NixlException e) {
            throw new TransportException(String.valueOf(e.getMessage()), e);
        }
    }

    private static dev.dormouse.nixl.BlockList blocks(List<BlockRow> rows) {
        MemoryKind kind = rows.getFirst().kind();
        dev.dormouse.nixl.BlockList.Builder builder =
                dev.dormouse.nixl.BlockList.builder(type(kind));
        for (BlockRow row : rows) {
            requireSameKind(kind, row.kind());
            builder.addStrided(
                    row.address(),
                    row.strideBytes(),
                    row.blockBytes(),
                    row.count(),
                    row.deviceId());
        }
        return builder.build();
    }

    private static void requireSameKind(MemoryKind first, MemoryKind other) {
        if (first != other) {
            throw new IllegalArgumentException(
                    "one list must lie in one kind of memory, but has " + first + " and " + other);
        }
    }

    private static MemoryType type(MemoryKind kind) {
        return switch (kind) {
            case DRAM -> MemoryType.DRAM;
            case VRAM -> MemoryType.VRAM;
        };
    }

    private static RemoteAgent own(RemotePeer peer) {
        if (peer instanceof NixlPeer own) {
            return own.agent();
        }
        throw new IllegalArgumentException("the peer belongs to another transport: " + peer);
    }

    private static dev.dormouse.nixl.PreparedList list(BlockList blocks) {
        if (blocks instanceof NixlBlockList own) {
            return own.list();
        }
        throw new IllegalArgumentException(
                "the block list belongs to another transport: " + blocks);
    }
}
