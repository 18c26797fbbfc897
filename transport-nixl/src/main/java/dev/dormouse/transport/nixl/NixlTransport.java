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
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
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
import java.util.stream.Stream;

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

    private static final Logger LOGGER = System.getLogger("dormouse.transport.nixl");

    /**
     * A compromise: what UCX does not wake the thread for, such as parts of a connection's set-up,
     * waits so long; and each round takes some ten microseconds, also of an engine that sleeps.
     */
    private static final Duration PROGRESS_DELAY = Duration.ofMillis(10);

    /** How long the end of reads is waited for before the agent ends. */
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(2);

    /** More peers than come back at any one time. */
    private static final int MAX_PARKED = 16;

    /** After so many, the old sections of a peer are worth a new connection. */
    private static final int MAX_SECTIONS = 4_096;

    private final NixlAgent agent;
    private final ParkedPeers parked = new ParkedPeers(MAX_PARKED);
    private final DeviceIds deviceIds = new DeviceIds();
    private final Set<NixlTransfer> unreleased = new LinkedHashSet<>();
    private final DevicePieces pieces =
            new DevicePieces(warning -> LOGGER.log(Level.WARNING, warning));

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

    /**
     * As declared. Device memory is registered by pieces of physical memory, which blocks may
     * cross; where it can be unmapped, a warning tells that NIXL is slow with it on one host.
     */
    @Override
    public Registration register(List<MemoryRange> ranges) {
        MemoryKind kind = ranges.getFirst().kind();
        ranges.forEach(range -> requireSameKind(kind, range.kind()));
        return translated(
                () ->
                        switch (kind) {
                            case DRAM ->
                                    deviceIds.register(
                                            addresses(ranges),
                                            id -> registerAs(onDevice(ranges, id)),
                                            agent::localMetadata);
                            case VRAM -> registerAs(ranges);
                        });
    }

    private static List<Long> addresses(List<MemoryRange> ranges) {
        return ranges.stream()
                .flatMap(range -> Stream.of(range.address(), range.lengthBytes()))
                .toList();
    }

    private static List<MemoryRange> onDevice(List<MemoryRange> ranges, int deviceId) {
        return ranges.stream()
                .map(
                        range ->
                                new MemoryRange(
                                        range.address(),
                                        range.lengthBytes(),
                                        range.kind(),
                                        deviceId))
                .toList();
    }

    private NixlRegistration registerAs(List<MemoryRange> ranges) {
        List<dev.dormouse.nixl.MemoryRange> segments = new ArrayList<>(ranges.size());
        for (MemoryRange range : ranges) {
            for (MemoryRange piece : pieces.of(range)) {
                segments.add(
                        new dev.dormouse.nixl.MemoryRange(
                                MemorySegment.ofAddress(piece.address())
                                        .reinterpret(piece.lengthBytes()),
                                piece.deviceId()));
            }
        }
        return new NixlRegistration(
                agent.register(type(ranges.getFirst().kind()), segments), List.copyOf(ranges));
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

    /** Loads a peer; one of the same name that nobody uses is refreshed, or gives way. */
    private RemoteAgent loadAnew(byte[] metadata) {
        try {
            return agent.load(metadata);
        } catch (dev.dormouse.nixl.PeerLoadedException e) {
            RemoteAgent kept = parked.named(e.peer());
            if (kept == null) {
                throw e;
            }
            boolean refreshed = kept.sections() < MAX_SECTIONS && refreshed(kept, metadata);
            if (!refreshed) {
                kept.close();
            }
            parked.remove(kept);
            return refreshed ? kept : agent.load(metadata);
        }
    }

    /** False if the peer cannot take these metadata as it is. */
    private static boolean refreshed(RemoteAgent kept, byte[] metadata) {
        try {
            kept.loadSections(metadata);
            return true;
        } catch (NixlException e) {
            return false;
        }
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        MemoryType type = type(rows);
        try {
            SplitBlocks blocks = SplitBlocks.of(type, rows, agent.registered(type));
            return translated(() -> new NixlBlockList(agent.prepare(blocks.prepared()), blocks));
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new TransportException("prepare local blocks failed: " + e.getMessage(), e);
        }
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        RemoteAgent remote = own(peer);
        try { // the rows stand in the peer's bytes
            MemoryType type = type(rows);
            SplitBlocks blocks = SplitBlocks.of(type, rows, remote.registered(type));
            return translated(() -> new NixlBlockList(remote.prepare(blocks.prepared()), blocks));
        } catch (IllegalArgumentException | ArithmeticException e) {
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
        SplitBlocks here = list(local).blocks();
        SplitBlocks there = list(remote).blocks();
        if (!(list(local).list() instanceof LocalList ours)
                || !(list(remote).list() instanceof RemoteList theirs)) {
            throw new IllegalArgumentException(
                    operation + ": needs a local and a remote list, in this order");
        }
        boolean split = here.splits(localIndices) || there.splits(remoteIndices);
        if (split && !(ours.isOpen() && theirs.isOpen())) { // which else the lists' use finds
            throw new IllegalStateException(
                    operation + " refused: a block list is closed; prepare it again");
        }
        return translated(
                () -> {
                    dev.dormouse.nixl.Transfer transfer;
                    if (split) {
                        SplitBlocks.Parts parts =
                                SplitBlocks.parts(here, localIndices, there, remoteIndices);
                        transfer =
                                agent.createTransfer(
                                        operation,
                                        parts.local(),
                                        theirs.owner(),
                                        parts.remote(),
                                        notification);
                    } else {
                        transfer =
                                agent.createTransfer(
                                        operation,
                                        ours,
                                        localIndices,
                                        theirs,
                                        remoteIndices,
                                        notification);
                    }
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

    private static MemoryType type(List<BlockRow> rows) {
        MemoryKind kind = rows.getFirst().kind();
        rows.forEach(row -> requireSameKind(kind, row.kind()));
        return type(kind);
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

    private static NixlBlockList list(BlockList blocks) {
        if (blocks instanceof NixlBlockList own) {
            return own;
        }
        throw new IllegalArgumentException(
                "the block list belongs to another transport: " + blocks);
    }
}
