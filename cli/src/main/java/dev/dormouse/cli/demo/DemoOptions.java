package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.FleetOptions;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How much the demonstration does.
 *
 * @param model what the engines serve, or null for the default
 * @param prompts prompts per check
 * @param tokens tokens generated per prompt
 * @param cycles sleep and wake cycles of the repeated cases
 * @param kvCacheMiB KV cache of each engine
 * @param prefillRanks tensor parallel size of the prefill engine
 * @param decodeRanks tensor parallel size of the decode engine
 * @param transport which way KV takes
 * @param revokes false to show what happens if mapped memory is not taken back
 * @param asleepSeconds how long the prefill engine sleeps under load
 * @param json where to write the report, or null
 * @param logs where to keep the processes' logs, or null
 */
record DemoOptions(
        @Nullable Path model,
        int prompts,
        int tokens,
        int cycles,
        int kvCacheMiB,
        int prefillRanks,
        int decodeRanks,
        FleetOptions.Transport transport,
        boolean revokes,
        int asleepSeconds,
        @Nullable Path json,
        @Nullable Path logs) {
    FleetOptions fleet() {
        return new FleetOptions(model, kvCacheMiB, prefillRanks, decodeRanks, transport, revokes);
    }
}
