package dev.dormouse.connector;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What an engine's side channel serves of its ranks. */
final class ServedPayloads {
    private ServedPayloads() {}

    /** The bytes for each rank, all with the same epoch. */
    static Map<RankId, byte[]> encode(
            List<RankPayload> payloads, ConnectorConfig config, long epoch) {
        String hash = config.factors().hash();
        Map<RankId, byte[]> served = new HashMap<>();
        for (RankPayload payload : payloads) {
            byte[] metadata = AgentMetadataCodec.encode(payload.metadata());
            served.put(
                    new RankId(payload.ppRank(), payload.tpRank()),
                    new HandshakePayload(hash, metadata, epoch, config.instanceId()).encode());
        }
        return served;
    }

    /**
     * Refuses what is not one payload per rank of this engine.
     *
     * @throws ConnectorException if it is not
     */
    static void requireOnePerRank(List<RankPayload> payloads, ConnectorConfig config) {
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
}
