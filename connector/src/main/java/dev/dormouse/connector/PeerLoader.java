package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Loads peers into the transport and drops them, and tries again what could not be dropped. */
final class PeerLoader {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final KvTransport transport;
    private final StatisticsRecorder statistics;
    private final List<LoadedEngine> undropped = new ArrayList<>();

    PeerLoader(KvTransport transport, StatisticsRecorder statistics) {
        this.transport = transport;
        this.statistics = statistics;
    }

    /**
     * Loads what a handshake brought. If an agent of it is loaded under another name or address,
     * whoever is idle gives way: nobody may keep an engine's agent from it by naming it first.
     *
     * @param engines all that is known
     * @throws TransportException if the transport refuses; what it keeps then is dropped later
     */
    LoadedEngine load(FetchedEngine fetched, Collection<RemoteEngine> engines) {
        for (int conflicts = fetched.ranks().size(); ; conflicts--) {
            try {
                LoadedEngine loaded = LoadedEngine.load(transport, fetched, undropped::add);
                loaded.routes().forEach(route -> statistics.peer(route, 1));
                return loaded;
            } catch (PeerLoadedException e) {
                if (conflicts == 0 || !drop(e.agentName(), engines)) {
                    throw e;
                }
            }
        }
    }

    /** True if something of what may hold that agent could be dropped. */
    private boolean drop(String agentName, Collection<RemoteEngine> engines) {
        boolean dropped = false;
        for (RemoteEngine other : engines) {
            LoadedEngine holder = other.loaded;
            if (holder != null && holder.holds(agentName) && holder.transfersInFlight() == 0) {
                drop(other);
                dropped = true;
            }
        }
        int before = undropped.size();
        retry();
        return dropped || undropped.size() < before;
    }

    /** Drops what is loaded of an engine. No read may be in flight. */
    void drop(RemoteEngine engine) {
        LoadedEngine old = engine.loaded;
        engine.setLoaded(null);
        if (old != null) {
            old.routes().forEach(route -> statistics.peer(route, -1));
            try {
                old.close();
            } catch (TransportException e) {
                undropped.add(old);
                LOG.log(System.Logger.Level.WARNING, "could not drop " + old, e);
            }
        }
    }

    /** Tries once more to drop what could not be dropped. */
    void retry() {
        undropped.removeIf(
                engine -> {
                    try {
                        engine.close();
                        return true;
                    } catch (TransportException e) {
                        return false;
                    }
                });
    }

    /**
     * Makes sure that nothing is left.
     *
     * @throws TransportException if the transport keeps a peer; it is tried again later
     */
    void requireAllDropped() {
        retry();
        if (!undropped.isEmpty()) {
            throw new TransportException("release of the KV cache: still loaded: " + undropped);
        }
    }
}
