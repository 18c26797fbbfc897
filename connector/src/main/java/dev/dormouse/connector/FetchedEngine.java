package dev.dormouse.connector;

import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What a handshake brought, decoded and checked, but not loaded.
 *
 * @param engineId the engine that was asked for
 * @param address where it was asked
 * @param identity of the registration that the payloads describe
 * @param tellsEpoch whether the payloads carried the epoch, or the requests did
 * @param mapping of the peer's ranks to this one
 * @param ranks the ranks that wait for this rank
 * @param clock how the peer's clock stands to this rank's; null if it does not tell
 */
record FetchedEngine(
        String engineId,
        SideChannelAddress address,
        RegistrationIdentity identity,
        boolean tellsEpoch,
        RankMapping mapping,
        List<FetchedRank> ranks,
        @Nullable ClockOffset clock) {
    /**
     * One source rank.
     *
     * @param agentMetadata the transport's bytes
     * @param geometry its regions
     */
    record FetchedRank(TransportMetadata agentMetadata, RemoteGeometry geometry) {
        boolean sameAs(FetchedRank other) {
            return geometry.equals(other.geometry) && agentMetadata.equals(other.agentMetadata);
        }
    }

    FetchedEngine {
        ranks = List.copyOf(ranks);
    }

    /**
     * Decodes a peer's answers: the wrapper first, and what is inside only if both sides are
     * compatible.
     *
     * @param namedEpoch the newest epoch that a request named before the peer was asked; stands in
     *     for a peer that does not tell
     * @throws ConnectorException if an answer is not usable, saying why
     */
    static FetchedEngine decode(
            String engineId,
            SideChannelAddress address,
            HandshakeAnswers answers,
            RankMapping mapping,
            long namedEpoch,
            ConnectorConfig config,
            KvCacheRegions local) {
        List<FetchedRank> ranks = new ArrayList<>();
        String instanceId = null;
        long epoch = Long.MAX_VALUE;
        long newestEpoch = 0;
        List<byte[]> payloads = answers.payloads();
        if (payloads.size() != mapping.slices().size()) {
            throw new ConnectorException(
                    "handshake: "
                            + payloads.size()
                            + " answers for "
                            + mapping.slices().size()
                            + " ranks");
        }
        for (int i = 0; i < payloads.size(); i++) {
            HandshakePayload payload = HandshakePayload.decode(payloads.get(i));
            requireCompatible(payload, config);
            AgentMetadata metadata = AgentMetadataCodec.decode(payload.agentMetadata());
            RemoteGeometry geometry =
                    RemoteGeometry.check(
                            engineId,
                            metadata,
                            local,
                            mapping.slices().get(i),
                            config.peers().maxBlocks());
            if (config.factors().isPush() && geometry.blockRatio() != 1) {
                throw new ConnectorException(
                        "handshake: tokens per block differ: here "
                                + local.blockTokens()
                                + ", at the peer "
                                + geometry.blockTokens()
                                + "; a push needs equal ones");
            }
            if (!ranks.isEmpty() && !Objects.equals(instanceId, payload.instanceId())) {
                throw new ConnectorException(
                        "handshake: the ranks of engine "
                                + Excerpt.of(engineId)
                                + " answered from two processes; it restarts");
            }
            requireEqualBlocks(ranks, geometry);
            instanceId = payload.instanceId();
            epoch = Math.min(epoch, payload.epoch());
            newestEpoch = Math.max(newestEpoch, payload.epoch());
            ranks.add(new FetchedRank(metadata.agentMetadata(), geometry));
        }
        boolean tellsEpoch = epoch > 0;
        return new FetchedEngine(
                engineId,
                address,
                tellsEpoch
                        ? new RegistrationIdentity(instanceId, epoch, newestEpoch)
                        : new RegistrationIdentity(instanceId, namedEpoch, namedEpoch),
                tellsEpoch,
                mapping,
                ranks,
                answers.clock());
    }

    boolean describesSameRegistration(FetchedEngine other) {
        if (!Objects.equals(identity.instanceId(), other.identity.instanceId())
                || tellsEpoch != other.tellsEpoch
                || (tellsEpoch && !identity.equals(other.identity))
                || !mapping.equals(other.mapping)) {
            return false;
        }
        for (int i = 0; i < ranks.size(); i++) {
            if (!ranks.get(i).sameAs(other.ranks.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static void requireEqualBlocks(List<FetchedRank> ranks, RemoteGeometry geometry) {
        if (!ranks.isEmpty()) {
            RemoteGeometry first = ranks.getFirst().geometry();
            for (int region = 0; region * first.pieces() < first.rows().size(); region++) {
                if (first.blocks(region) != geometry.blocks(region)) {
                    throw new ConnectorException(
                            "handshake: the peer's ranks have "
                                    + first.blocks(region)
                                    + " and "
                                    + geometry.blocks(region)
                                    + " blocks in region "
                                    + region);
                }
            }
        }
    }

    private static void requireCompatible(HandshakePayload payload, ConnectorConfig config) {
        String ours = config.factors().hash();
        if (config.enforceCompatibility() && !ours.equals(payload.compatibilityHash())) {
            throw new ConnectorException(
                    "handshake: compatibility hash mismatch: here "
                            + ours
                            + ", at the peer "
                            + Excerpt.of(payload.compatibilityHash())
                            + "; vLLM version, model, dtype and cache dtype must be the same on"
                            + " both sides");
        }
    }
}
