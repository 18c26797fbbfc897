package dev.dormouse.model;

import java.lang.foreign.MemorySegment;

/**
 * A rank's memory for the length of one step.
 *
 * @param weights what {@link LanguageModel#loadWeights} filled for the rank
 * @param kv the rank's KV cache
 */
public record RankView(MemorySegment weights, PagedKv kv) {}
