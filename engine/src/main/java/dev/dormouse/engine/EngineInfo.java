package dev.dormouse.engine;

import dev.dormouse.model.ModelConfig;

/**
 * What an engine serves.
 *
 * @param servedModelName the name in API requests
 * @param model the model's constants
 * @param maxModelLength longest prompt plus output, in tokens
 * @param kvBlocks blocks in the KV cache
 * @param blockTokens tokens per block
 * @param sleepModeEnabled whether it may give memory back
 */
public record EngineInfo(
        String servedModelName,
        ModelConfig model,
        int maxModelLength,
        int kvBlocks,
        int blockTokens,
        boolean sleepModeEnabled) {}
