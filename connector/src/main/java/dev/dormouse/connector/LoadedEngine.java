package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A peer engine as loaded into the transport: the ranks that have this rank's heads, their prepared
 * blocks, and the identity of the registration that all this describes.
 */
final class LoadedEngine {
    /**
     * One rank of the peer.
     *
     * @param peer its agent
     * @param blocks its prepared blocks, region by region; null if another rank is read instead
     * @param geometry its regions
     */
    record SourceRank(RemotePeer peer, @Nullable BlockList blocks, RemoteGeometry geometry) {}

    private final FetchedEngine fetched;
    private final List<SourceRank> ranks;
    private RegistrationIdentity identity;
    private @Nullable ClockOffset clock;
    private int transfersInFlight;

    private LoadedEngine(FetchedEngine fetched, List<SourceRank> ranks) {
        this.fetched = fetched;
        this.ranks = List.copyOf(ranks);
        this.identity = fetched.identity();
        this.clock = fetched.clock();
    }

    /**
     * Loads what a handshake brought.
     *
     * @param leftovers takes what stays loaded, if what was loaded before the failure cannot be
     *     dropped; it must be closed again
     * @throws TransportException if the transport refuses; nothing else stays loaded then
     */
    static LoadedEngine load(
            KvTransport transport, FetchedEngine fetched, Consumer<LoadedEngine> leftovers) {
        List<SourceRank> ranks = new ArrayList<>();
        try {
            for (FetchedEngine.FetchedRank rank : fetched.ranks()) {
                RemotePeer peer = transport.load(rank.agentMetadata());
                BlockList blocks = null;
                try {
                    if (!rank.geometry().repeated()) {
                        blocks = transport.prepareRemote(peer, rank.geometry().rows());
                    }
                } finally {
                    ranks.add(new SourceRank(peer, blocks, rank.geometry()));
                }
            }
            return new LoadedEngine(fetched, ranks);
        } catch (RuntimeException e) {
            LoadedEngine partial = new LoadedEngine(fetched, ranks);
            try {
                partial.close();
            } catch (TransportException second) {
                e.addSuppressed(second);
                leftovers.accept(partial);
            }
            throw e instanceof TransportException refusal
                    ? refusal // whatever else it is, the peer's bytes are its cause
                    : new TransportException("load engine: " + e.getMessage(), e);
        }
    }

    /** How this rank's heads lie on the peer's ranks. */
    RankMapping mapping() {
        return fetched.mapping();
    }

    SideChannelAddress address() {
        return fetched.address();
    }

    RegistrationIdentity identity() {
        return identity;
    }

    /** How the peer's clock stands to this rank's, as far as it told. */
    @Nullable ClockOffset clock() {
        return clock;
    }

    List<SourceRank> ranks() {
        return ranks;
    }

    int transfersInFlight() {
        return transfersInFlight;
    }

    void addTransfer(int change) {
        transfersInFlight += change;
    }

    /** How each rank's memory is reached. */
    List<Route> routes() {
        return ranks.stream().map(rank -> rank.peer().route()).toList();
    }

    /** False once the transport has lost a rank, or all of it was dropped. */
    boolean isConnected() {
        return ranks.stream().allMatch(rank -> rank.peer().isConnected());
    }

    /**
     * True, and the identity is brought up to date, if a later handshake brought the same
     * registration. A peer that tells no epoch of its own has the one that requests name, as long
     * as its bytes are the same.
     */
    boolean confirm(FetchedEngine later) {
        if (!later.describesSameRegistration(fetched)) {
            return false;
        }
        clock = later.clock(); // clocks drift: the newest counts
        identity =
                new RegistrationIdentity(
                        identity.instanceId(),
                        Math.max(identity.epoch(), later.identity().epoch()),
                        Math.max(identity.newestEpoch(), later.identity().newestEpoch()));
        return true;
    }

    /** True if it holds the transport's peer of that name. */
    boolean holds(String agentName) {
        return ranks.stream().anyMatch(rank -> rank.peer().agentName().equals(agentName));
    }

    /**
     * Releases all prepared lists and drops all peers, each as far as it can. No transfer may be in
     * flight. May be called again after a failure: what is closed stays closed.
     *
     * @throws TransportException the first failure, with the others
     */
    void close() {
        if (transfersInFlight > 0) {
            throw new IllegalStateException(
                    "drop engine "
                            + fetched.engineId()
                            + ": "
                            + transfersInFlight
                            + " transfers in flight");
        }
        TransportException failure = new TransportException("drop " + this + " failed");
        closeAll(ranks, failure);
        if (failure.getSuppressed().length > 0) {
            throw failure;
        }
    }

    private static void closeAll(List<SourceRank> ranks, RuntimeException failure) {
        for (SourceRank rank : ranks) {
            BlockList blocks = rank.blocks();
            if (blocks != null) {
                closeAfter(failure, blocks::close);
            }
            closeAfter(failure, rank.peer()::close);
        }
    }

    private static void closeAfter(RuntimeException failure, Runnable close) {
        try {
            close.run();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    @Override
    public String toString() {
        return "engine="
                + Excerpt.of(fetched.engineId())
                + " address="
                + address()
                + " instance="
                + Excerpt.of(String.valueOf(identity.instanceId()))
                + " epoch="
                + identity.epoch();
    }
}
