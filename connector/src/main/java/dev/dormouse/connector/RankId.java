package dev.dormouse.connector;

/**
 * One rank of an engine.
 *
 * @param ppRank pipeline parallel rank
 * @param tpRank tensor parallel rank
 */
record RankId(int ppRank, int tpRank) {}
