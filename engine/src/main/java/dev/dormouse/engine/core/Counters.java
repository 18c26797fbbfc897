package dev.dormouse.engine.core;

/** Figures since the engine's start; written by its thread alone. */
final class Counters {
    long promptTokens;
    long computedPromptTokens;
    long remotePromptTokens;
    long remoteFirstTokens;
    long generatedTokens;
    long preemptions;
    long prefixCacheQueries;
    long prefixCacheHits;
}
