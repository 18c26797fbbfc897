package dev.dormouse.engine.core;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Moves blocks between engines of this process by copying, under the rule that makes sleep hard: a
 * peer that was loaded before its owner registered again knows dead keys, and its reads fail.
 */
final class DirectTransport implements KvTransport {
    /** All agents that can reach one another. */
    static final class Network {
        private final ConcurrentMap<String, DirectTransport> agents = new ConcurrentHashMap<>();
        private final AtomicLong keys = new AtomicLong(1);

        DirectTransport open(String agentName) {
            DirectTransport transport = new DirectTransport(this, agentName);
            agents.put(agentName, transport);
            return transport;
        }
    }

    private final Network network;
    private final String agentName;
    private final Set<Long> liveKeys = ConcurrentHashMap.newKeySet();
    private final Deque<PeerMessage> inbox = new ArrayDeque<>();

    private DirectTransport(Network network, String agentName) {
        this.network = network;
        this.agentName = agentName;
    }

    private record Peer(DirectTransport owner, Set<Long> keys) implements RemotePeer {
        @Override
        public String agentName() {
            return owner.agentName;
        }

        @Override
        public boolean isConnected() {
            return owner.liveKeys.containsAll(keys);
        }

        @Override
        public Route route() {
            return Route.direct("direct");
        }

        @Override
        public void close() {}
    }

    private record Blocks(List<MemorySegment> segments, Peer peer) implements BlockList {
        @Override
        public int size() {
            return segments.size();
        }

        @Override
        public void close() {}
    }

    private record Keyed(DirectTransport owner, long key, List<MemoryRange> ranges)
            implements Registration {
        @Override
        public List<String> revoke() {
            return List.of();
        }

        @Override
        public void readmit() {}

        @Override
        public void close() {
            owner.liveKeys.remove(key);
        }
    }

    @Override
    public String name() {
        return "direct";
    }

    @Override
    public String agentName() {
        return agentName;
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        long key = network.keys.getAndIncrement();
        liveKeys.add(key);
        return new Keyed(this, key, List.copyOf(ranges));
    }

    @Override
    public TransportMetadata metadata() {
        StringBuilder text = new StringBuilder(agentName);
        liveKeys.forEach(key -> text.append(' ').append(key));
        return TransportMetadata.ofAgent(text.toString().getBytes(UTF_8));
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        List<String> words = List.of(new String(metadata.agent(), UTF_8).split(" ", -1));
        DirectTransport owner = network.agents.get(words.getFirst());
        if (owner == null) {
            throw new TransportException("load: no agent " + words.getFirst());
        }
        Set<Long> keys = new HashSet<>();
        words.subList(1, words.size()).forEach(word -> keys.add(Long.parseLong(word)));
        return new Peer(owner, keys);
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        return new Blocks(segments(rows), new Peer(this, Set.copyOf(liveKeys)));
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        return new Blocks(segments(rows), (Peer) peer);
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        Blocks ours = (Blocks) local;
        Blocks theirs = (Blocks) remote;
        return copied(ours, localIndices, theirs, remoteIndices, theirs.peer(), notification);
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        Blocks ours = (Blocks) local;
        Blocks theirs = (Blocks) remote;
        return copied(theirs, remoteIndices, ours, localIndices, theirs.peer(), notification);
    }

    private Transfer copied(
            Blocks to, int[] toIndices, Blocks from, int[] fromIndices, Peer told, byte[] message) {
        TransferState end;
        if (to.peer().isConnected() && from.peer().isConnected()) {
            long bytes = 0;
            for (int i = 0; i < toIndices.length; i++) {
                MemorySegment source = from.segments().get(fromIndices[i]);
                to.segments().get(toIndices[i]).copyFrom(source);
                bytes += source.byteSize();
            }
            notify(told, message);
            end =
                    new TransferState.Done(
                            Duration.ofNanos(1), Duration.ofNanos(1), bytes, toIndices.length);
        } else {
            end = new TransferState.Failed("the registration is gone");
        }
        return new Transfer() {
            @Override
            public TransferState poll() {
                return end;
            }

            @Override
            public boolean release() {
                return true;
            }
        };
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        DirectTransport owner = ((Peer) peer).owner();
        synchronized (owner.inbox) {
            owner.inbox.add(new PeerMessage(agentName, message.clone()));
        }
    }

    @Override
    public List<PeerMessage> messages() {
        synchronized (inbox) {
            List<PeerMessage> taken = new ArrayList<>(inbox);
            inbox.clear();
            return taken;
        }
    }

    @Override
    public long rejectedMessages() {
        return 0;
    }

    @Override
    public void close() {
        liveKeys.clear();
        network.agents.remove(agentName);
    }

    private static List<MemorySegment> segments(List<BlockRow> rows) {
        List<MemorySegment> segments = new ArrayList<>();
        for (BlockRow row : rows) {
            for (int i = 0; i < row.count(); i++) {
                segments.add(
                        MemorySegment.ofAddress(row.address() + i * row.strideBytes())
                                .reinterpret(row.blockBytes()));
            }
        }
        return segments;
    }
}
