package dev.dormouse.connector;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What an engine tells others of its memory: every rank's payload, in one registration epoch, at
 * one side channel. Used by the engine's thread.
 */
final class Publication implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final ConnectorConfig config;
    private final SideChannel.Opener opener;
    private final SideChannelDesk desk;
    private final HoldBook holdBook;
    private @Nullable SideChannel sideChannel;
    private long epoch;

    /**
     * Nothing is published.
     *
     * @param desk answers whoever asks at the side channel
     * @param holdBook is told in which epoch its holds are
     */
    Publication(
            ConnectorConfig config,
            Surroundings surroundings,
            SideChannelDesk desk,
            HoldBook holdBook) {
        this.config = config;
        this.opener = surroundings.opener();
        this.epoch = surroundings.epochBase();
        this.desk = desk;
        this.holdBook = holdBook;
    }

    /**
     * Serves these payloads in the next epoch, and nothing else; opens the side channel if it is
     * the first time.
     *
     * @param payloads one of every rank
     * @param nothingHeld whether no older payload leads to anything that is held: who was given one
     *     need not be known any more
     */
    void publish(List<RankPayload> payloads, boolean nothingHeld) {
        requireOnePerRank(payloads);
        if (sideChannel == null) {
            sideChannel =
                    opener.open(
                            new SideChannelAddress(config.bindHost(), config.sideChannelPort()),
                            desk);
        }
        epoch++;
        holdBook.begin(epoch);
        String hash = config.factors().hash();
        Map<RankId, byte[]> served = new HashMap<>();
        for (RankPayload payload : payloads) {
            byte[] metadata = AgentMetadataCodec.encode(payload.metadata());
            served.put(
                    new RankId(payload.ppRank(), payload.tpRank()),
                    new HandshakePayload(hash, metadata, epoch, config.instanceId()).encode());
        }
        if (nothingHeld) {
            desk.forgetReaders();
        }
        desk.serve(epoch, served);
        LOG.log(
                System.Logger.Level.INFO,
                "published: engine={0} instance={1} epoch={2} ranks={3} address={4}:{5}",
                config.engineId(),
                config.instanceId(),
                Long.toString(epoch),
                served.size(),
                config.advertisedHost(),
                Integer.toString(sideChannel.port()));
    }

    /** Serves nothing, and answers that nothing is held, until the next {@link #publish}. */
    void withdraw() {
        holdBook.begin(epoch);
        desk.withdraw();
    }

    /** The current epoch; before the first {@link #publish}, the one below it. */
    long epoch() {
        return epoch;
    }

    /** The side channel's port, 0 before the first {@link #publish}. */
    int port() {
        return sideChannel == null ? 0 : sideChannel.port();
    }

    /** Where readers find what this engine holds of a request of its own. */
    RemoteSource source(String requestId, RemoteLease lease) {
        if (sideChannel == null) {
            throw new IllegalStateException(
                    "hand over: request=" + requestId + " finished before the first publish");
        }
        return new RemoteSource(
                config.engineId(),
                config.instanceId(),
                requestId,
                config.advertisedHost(),
                sideChannel.port(),
                config.tpSize(),
                1,
                epoch,
                lease);
    }

    private void requireOnePerRank(List<RankPayload> payloads) {
        Set<Integer> ranks = new HashSet<>();
        for (RankPayload payload : payloads) {
            AgentMetadata metadata = payload.metadata();
            if (payload.ppRank() != 0
                    || payload.tpRank() < 0
                    || payload.tpRank() >= config.tpSize()
                    || !ranks.add(payload.tpRank())
                    || !metadata.engineId().equals(config.engineId())
                    || metadata.blockTokens() != config.blockTokens()) {
                throw new ConnectorException(
                        "publish: payload of pp rank "
                                + payload.ppRank()
                                + " tp rank "
                                + payload.tpRank()
                                + " engine "
                                + metadata.engineId()
                                + " blockTokens "
                                + metadata.blockTokens()
                                + " does not belong to engine "
                                + config.engineId()
                                + " tpSize "
                                + config.tpSize()
                                + " blockTokens "
                                + config.blockTokens());
            }
        }
        if (ranks.size() != config.tpSize()) {
            throw new ConnectorException(
                    "publish: "
                            + ranks.size()
                            + " payloads for tpSize "
                            + config.tpSize()
                            + "; every rank publishes at once");
        }
    }

    /** Closes the side channel. Idempotent. */
    @Override
    public void close() {
        if (sideChannel != null) {
            sideChannel.close();
        }
    }
}
