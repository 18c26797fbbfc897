package dev.dormouse.connector;

/**
 * One rank's handshake payload, before the scheduler's side stamps epoch and identity on it.
 *
 * @param ppRank pipeline parallel rank
 * @param tpRank tensor parallel rank
 * @param metadata what the rank says about its memory
 */
public record RankPayload(int ppRank, int tpRank, AgentMetadata metadata) {}
