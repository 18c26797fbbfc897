package dev.dormouse.cli.bench;

import com.fasterxml.jackson.annotation.JsonProperty;

/**
 * One row of {@code dormouse bench transfer}: the best rounds.
 *
 * @param transport what moved the blocks
 * @param bytes of all blocks
 * @param blockBytes of each
 * @param gigabytesPerSecond 10^9 bytes in a second
 * @param memcpyGigabytesPerSecond of a plain copy of the same blocks from the same memory, which
 *     the reader has mapped, in the same run
 * @param gigabytesPerCpuSecond in a second of processor time of the reading process; what the other
 *     process works is not counted
 * @param memcpyGigabytesPerCpuSecond likewise
 */
record TransferRate(
        String transport,
        long bytes,
        @JsonProperty("block_bytes") long blockBytes,
        @JsonProperty("gb_per_s") double gigabytesPerSecond,
        @JsonProperty("memcpy_gb_per_s") double memcpyGigabytesPerSecond,
        @JsonProperty("gb_per_cpu_s") double gigabytesPerCpuSecond,
        @JsonProperty("memcpy_gb_per_cpu_s") double memcpyGigabytesPerCpuSecond) {
    /** How much of the plain copy's rate it reaches. */
    @JsonProperty("ratio")
    double ratio() {
        return gigabytesPerSecond / memcpyGigabytesPerSecond;
    }

    /** How many bytes it moves with the processor time in which the plain copy moves one. */
    @JsonProperty("cpu_ratio")
    double cpuRatio() {
        return gigabytesPerCpuSecond / memcpyGigabytesPerCpuSecond;
    }
}
