package dev.dormouse.cli.bench;

import com.fasterxml.jackson.annotation.JsonProperty;

/**
 * One row of {@code dormouse bench engine}: the median run.
 *
 * @param workload such as {@code decode 1 after 960}
 * @param tokensPerSecond of all sequences together
 * @param gigaflopsPerSecond multiplications and additions of matrices and attention
 * @param readGigabytesPerSecond 10^9 bytes of weights and KV cache in a second, each byte once per
 *     step
 * @param readRatio how much of the rate at which the same threads can read the weights that is
 */
record EngineRate(
        String workload,
        @JsonProperty("tokens_per_s") double tokensPerSecond,
        @JsonProperty("gflop_per_s") double gigaflopsPerSecond,
        @JsonProperty("read_gb_per_s") double readGigabytesPerSecond,
        @JsonProperty("read_ratio") double readRatio) {
    /**
     * @param memoryGigabytesPerSecond the rate at which the weights can be read
     */
    static EngineRate of(EngineWork work, double seconds, double memoryGigabytesPerSecond) {
        double read = work.readBytes() / seconds / 1e9;
        return new EngineRate(
                work.name(),
                work.tokens() / seconds,
                work.operations() / seconds / 1e9,
                read,
                read / memoryGigabytesPerSecond);
    }
}
