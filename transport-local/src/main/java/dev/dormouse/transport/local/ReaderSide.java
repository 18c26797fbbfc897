package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PeerCredentials;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.TransportException;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * This agent's connections to peers whose memory it maps, has mapped, or is about to. Safe for all
 * threads: the agent's owner loads, others prepare that, the socket loop takes answers and maps.
 */
final class ReaderSide {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");
    private static final long RETRY_NANOS = 1_000_000;
    private static final String CLOSED = "this agent is closed";

    private final String agentName;
    private final Set<Integer> users;
    private final Limits limits;
    private final @Nullable DeviceCopier copier;
    private final Wire wire;
    private final SocketLoop loop;
    private final Consumer<PeerMapping> mapped;
    private final Map<String, PeerLink> links = new ConcurrentHashMap<>();
    private volatile boolean closed;

    /**
     * Connects nothing yet.
     *
     * @param agentName this agent's
     * @param users whose processes may be peers
     * @param copier this agent's device; null if it maps host memory only
     * @param mapped is shown each mapping, by the socket loop
     */
    ReaderSide(
            String agentName,
            Set<Integer> users,
            Limits limits,
            @Nullable DeviceCopier copier,
            Wire wire,
            SocketLoop loop,
            Consumer<PeerMapping> mapped) {
        this.agentName = agentName;
        this.users = Set.copyOf(users);
        this.limits = limits;
        this.copier = copier;
        this.wire = wire;
        this.loop = loop;
        this.mapped = mapped;
    }

    String agentName() {
        return agentName;
    }

    Limits limits() {
        return limits;
    }

    @Nullable DeviceCopier copier() {
        return copier;
    }

    SocketLoop loop() {
        return loop;
    }

    /** Somebody may make the mapping's first touches cheap. */
    void mapped(PeerMapping mapping) {
        mapped.accept(mapping);
    }

    /**
     * Does what takes time in {@link #load}, as far as that can be. Waits for the peer, at most as
     * long as a load. What fails is left to the load.
     */
    void prepare(LocalMetadata peer) {
        if (links.size() >= limits.sessions()) {
            return;
        }
        try {
            link(peer, false).awaitAnswer();
        } catch (TransportException e) {
            LOG.log(System.Logger.Level.DEBUG, "not prepared: {0}", e.getMessage());
        }
    }

    /**
     * The memory of all registrations that the metadata name, mapped. Nothing of that agent may be
     * loaded.
     *
     * @throws TransportException if the agent has gone, does not give them, or does not answer in
     *     time; then nothing is held
     */
    LocalPeer load(LocalMetadata peer) {
        return link(peer, true).load(peer);
    }

    /** A connection over which that memory is asked for. */
    private PeerLink link(LocalMetadata peer, boolean insists) {
        while (true) {
            PeerLink known = links.get(peer.agentName());
            if (known != null) {
                if (known.ask(peer, insists)) {
                    return known;
                }
                ended(known);
            }
            PeerLink fresh = connect(peer);
            if (enter(fresh, peer, insists)) {
                return fresh;
            }
        }
    }

    /**
     * Asks over a connection from now on. One at a time with {@link #close}, after which nobody may
     * send any more.
     *
     * @return false if another thread was faster
     * @throws TransportException if this agent is closed
     */
    private synchronized boolean enter(PeerLink fresh, LocalMetadata peer, boolean insists) {
        if (closed) {
            fresh.close();
            throw failure(peer, CLOSED);
        }
        if (links.putIfAbsent(peer.agentName(), fresh) != null) {
            fresh.close();
            return false;
        }
        loop.watch(fresh);
        boolean _ = fresh.ask(peer, insists); // if it ends, it tells the reason
        return true;
    }

    private PeerLink connect(LocalMetadata peer) {
        int socket = socket(peer);
        try {
            requireAllowed(peer, socket);
        } catch (LibcException e) {
            Libc.close(socket);
            throw failure(peer, String.valueOf(e.getMessage()), e);
        } catch (TransportException e) {
            Libc.close(socket);
            throw e;
        }
        return new PeerLink(this, peer, new Connection(wire, socket));
    }

    private int socket(LocalMetadata peer) {
        long deadlineNanos = System.nanoTime() + limits.load().toNanos();
        try {
            while (true) {
                OptionalInt socket = UnixSocket.connect(peer.socketName());
                if (socket.isPresent()) {
                    return socket.getAsInt();
                }
                if (closed) {
                    throw failure(peer, CLOSED);
                }
                if (System.nanoTime() - deadlineNanos > 0) {
                    throw failure(peer, "too many connections wait there");
                }
                LockSupport.parkNanos(RETRY_NANOS);
            }
        } catch (LibcException e) {
            throw failure(peer, "its process has ended, or the agent is closed", e);
        }
    }

    /** Anybody may have taken the name after the agent had gone. */
    private void requireAllowed(LocalMetadata peer, int socket) {
        PeerCredentials credentials = UnixSocket.credentials(socket);
        if (!users.contains(credentials.uid())) {
            throw failure(
                    peer,
                    "its process belongs to user %d, and allowed are %s"
                            .formatted(credentials.uid(), users));
        }
    }

    /** A connection is of no use any more. */
    void ended(PeerLink link) {
        boolean _ = links.remove(link.agentName(), link);
    }

    /** Gives all memory up, and ends all connections; none begins any more. Idempotent. */
    synchronized void close() {
        closed = true;
        links.values().forEach(PeerLink::close);
    }

    static TransportException failure(LocalMetadata peer, String why) {
        return new TransportException("load peer " + peer.agentName() + " failed: " + why);
    }

    private static TransportException failure(LocalMetadata peer, String why, Exception cause) {
        return new TransportException("load peer " + peer.agentName() + " failed: " + why, cause);
    }
}
