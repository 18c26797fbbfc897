package dev.dormouse.connector;

import java.util.List;

/**
 * One rank's handshake payload, before the scheduler's side stamps epoch and identity on it.
 *
 * @param ppRank pipeline parallel rank
 * @param tpRank tensor parallel rank
 * @param metadata what the rank says about its memory
 * @param children of a rank with several connectors, their payloads; otherwise empty
 */
public record RankPayload(
        int ppRank, int tpRank, AgentMetadata metadata, List<RankPayload> children) {
    /** Copies the list. */
    public RankPayload {
        children = List.copyOf(children);
    }

    /** The payload of a rank with one connector. */
    public RankPayload(int ppRank, int tpRank, AgentMetadata metadata) {
        this(ppRank, tpRank, metadata, List.of());
    }

    /** This payload, with those of all connectors of the rank. */
    RankPayload with(List<RankPayload> all) {
        return new RankPayload(ppRank, tpRank, metadata, all);
    }
}
