package dev.dormouse.cli.demo;

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
        int asleepSeconds,
        @Nullable Path json,
        @Nullable Path logs) {}
