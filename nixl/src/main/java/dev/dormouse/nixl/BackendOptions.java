package dev.dormouse.nixl;

import java.util.Map;
import java.util.Set;

/**
 * What a plugin can be told and serves.
 *
 * @param parameters names and values: a plugin's defaults, or a backend's values in force
 * @param memoryTypes kinds of memory that can be registered
 */
public record BackendOptions(Map<String, String> parameters, Set<MemoryType> memoryTypes) {
    /** Copies both. */
    public BackendOptions {
        parameters = Map.copyOf(parameters);
        memoryTypes = Set.copyOf(memoryTypes);
    }
}
