package dev.dormouse.cli.serve;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A rank's real transport, of which single calls fail before they do anything, and which knows what
 * its owner has not closed.
 */
final class FaultyTransport implements KvTransport {
    private final KvTransport transport;
    private final Faults faults;
    private final int rank;
    private final AtomicInteger registrations = new AtomicInteger();
    private final AtomicInteger lists = new AtomicInteger();
    private final AtomicInteger peers = new AtomicInteger();

    FaultyTransport(KvTransport transport, Faults faults, int rank) {
        this.transport = transport;
        this.faults = faults;
        this.rank = rank;
    }

    int registrations() {
        return registrations.get();
    }

    int lists() {
        return lists.get();
    }

    int peers() {
        return peers.get();
    }

    private void enter(String step) {
        faults.enter(step + " " + rank, TransportException::new);
    }

    /** Closes once, unless that fails. */
    private final class Closing {
        private final AtomicInteger count;
        private boolean closed;

        Closing(AtomicInteger count) {
            this.count = count;
            count.incrementAndGet();
        }

        void close(String step, AutoCloseable target) {
            enter(step);
            try {
                target.close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            if (!closed) {
                closed = true;
                count.decrementAndGet();
            }
        }
    }

    private record Registered(Registration target, Closing closing) implements Registration {
        @Override
        public List<MemoryRange> ranges() {
            return target.ranges();
        }

        @Override
        public List<String> revoke() {
            return target.revoke();
        }

        @Override
        public void readmit() {
            target.readmit();
        }

        @Override
        public void close() {
            closing.close("deregister", target);
        }
    }

    private record Prepared(BlockList target, Closing closing, String release)
            implements BlockList {
        @Override
        public int size() {
            return target.size();
        }

        @Override
        public void close() {
            closing.close(release, target);
        }
    }

    private record Loaded(RemotePeer target, Closing closing) implements RemotePeer {
        @Override
        public String agentName() {
            return target.agentName();
        }

        @Override
        public boolean isConnected() {
            return target.isConnected();
        }

        @Override
        public Route route() {
            return target.route();
        }

        @Override
        public void close() {
            closing.close("drop peer", target);
        }
    }

    @Override
    public String name() {
        return transport.name();
    }

    @Override
    public String agentName() {
        return transport.agentName();
    }

    @Override
    public void wakeWith(Runnable wake) {
        transport.wakeWith(wake);
    }

    @Override
    public Registration register(List<MemoryRange> ranges) {
        enter("register");
        return new Registered(transport.register(ranges), new Closing(registrations));
    }

    @Override
    public TransportMetadata metadata() {
        enter("metadata");
        return transport.metadata();
    }

    @Override
    public RemotePeer load(TransportMetadata metadata) {
        return new Loaded(transport.load(metadata), new Closing(peers));
    }

    @Override
    public BlockList prepareLocal(List<BlockRow> rows) {
        enter("prepare list");
        return new Prepared(transport.prepareLocal(rows), new Closing(lists), "release list");
    }

    @Override
    public BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows) {
        return new Prepared(
                transport.prepareRemote(((Loaded) peer).target(), rows),
                new Closing(lists),
                "release peer's list");
    }

    @Override
    public Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return transport.read(
                ((Prepared) local).target(),
                localIndices,
                ((Prepared) remote).target(),
                remoteIndices,
                notification);
    }

    @Override
    public Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification) {
        return transport.write(
                ((Prepared) local).target(),
                localIndices,
                ((Prepared) remote).target(),
                remoteIndices,
                notification);
    }

    @Override
    public void notify(RemotePeer peer, byte[] message) {
        transport.notify(((Loaded) peer).target(), message);
    }

    @Override
    public List<PeerMessage> messages() {
        return transport.messages();
    }

    @Override
    public long rejectedMessages() {
        return transport.rejectedMessages();
    }

    @Override
    public void close() {
        transport.close();
    }
}
