package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;

/** A KV transport between processes of one host. */
public final class LocalTransport implements KvTransport {
    private LocalTransport() {}

    /** Starts an agent. */
    public static LocalTransport open(LocalTransportOptions options) {
        if (!options.agentName().isEmpty()) {
            throw new TransportException("open " + options.agentName());
        }
        return new LocalTransport();
    }

    /** Whether {@link #load} can reach the agent that told these: it runs, or ran, on this host. */
    public boolean isSameHost(TransportMetadata metadata) {
        return metadata.sameHost().length > 1;
    }

    private static TransportException todo() {
        return new TransportException("local transport");
    }

    @Override
    public String name() {
        return "local";
    }

    @Override
    public String agentName() {
        throw todo();
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        throw todo();
    }

    @Override
    public TransportMetadata metadata() {
        throw todo();
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        throw todo();
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        throw todo();
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        throw todo();
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        throw todo();
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        throw todo();
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        throw todo();
    }

    @Override
    public List<PeerMessage> messages() {
        throw todo();
    }

    @Override
    public long rejectedMessages() {
        return 0;
    }

    @Override
    public void close() {}
}
