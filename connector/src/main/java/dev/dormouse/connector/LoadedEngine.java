package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;

/**
 * A peer engine as loaded into the transport: the ranks that this rank reads from, their prepared
 * blocks, and the identity of the registration that all this describes.
 */
final class LoadedEngine {
    /**
     * One source rank.
     *
     * @param peer its agent
     * @param blocks its prepared blocks, region by region
     * @param geometry its regions
     */
    record SourceRank(RemotePeer peer, BlockList blocks, RemoteGeometry geometry) {
        void close() {
            blocks.close();
            peer.close();
        }
    }

    private final FetchedEngine fetched;
    private final List<SourceRank> ranks;
    private RegistrationIdentity identity;
    private int readsInFlight;

    private LoadedEngine(FetchedEngine fetched, List<SourceRank> ranks) {
        this.fetched = fetched;
        this.ranks = List.copyOf(ranks);
        this.identity = fetched.identity();
    }

    /**
     * Loads what a handshake brought.
     *
     * @throws TransportException if the transport refuses; nothing stays loaded then
     */
    static LoadedEngine load(KvTransport transport, FetchedEngine fetched) {
        List<SourceRank> ranks = new ArrayList<>();
        try {
            for (FetchedEngine.FetchedRank rank : fetched.ranks()) {
                RemotePeer peer = transport.load(rank.agentMetadata());
                try {
                    BlockList blocks = transport.prepareRemote(peer, rank.geometry().rows());
                    ranks.add(new SourceRank(peer, blocks, rank.geometry()));
                } catch (RuntimeException e) { // whatever it is, the peer's bytes are its cause
                    closeAfter(e, peer::close);
                    throw e;
                }
            }
            return new LoadedEngine(fetched, ranks);
        } catch (RuntimeException e) {
            ranks.forEach(rank -> closeAfter(e, rank::close));
            throw e instanceof TransportException
                    ? e
                    : new TransportException("load: " + e.getMessage(), e);
        }
    }

    private static void closeAfter(RuntimeException failure, Runnable close) {
        try {
            close.run();
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
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

    List<SourceRank> ranks() {
        return ranks;
    }

    int readsInFlight() {
        return readsInFlight;
    }

    void addReadInFlight(int change) {
        readsInFlight += change;
    }

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
        identity =
                new RegistrationIdentity(
                        identity.instanceId(),
                        Math.max(identity.epoch(), later.identity().epoch()),
                        Math.max(identity.newestEpoch(), later.identity().newestEpoch()));
        return true;
    }

    /** Releases all prepared lists, then drops all peers. No read may be in flight. */
    void close() {
        if (readsInFlight > 0) {
            throw new IllegalStateException(
                    "drop engine "
                            + fetched.engineId()
                            + ": "
                            + readsInFlight
                            + " reads in flight");
        }
        ranks.forEach(SourceRank::close);
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
