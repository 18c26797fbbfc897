package dev.dormouse.cli.demo;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.stream.Stream;

/**
 * One row of the report.
 *
 * @param name the case, as in the JSON report
 * @param cycles sleep and wake cycles
 * @param checked outputs compared
 * @param equal outputs that equal the oracle's, token by token
 * @param awakeMiB memory of the processes that sleep, before
 * @param asleepMiB the most that they held asleep
 * @param wokenMiB the most that they held after a wake
 * @param failedTransfers reads, handshakes and notifications that failed
 * @param remoteReads prompts that the decode engine read
 * @param recomputedTokens prompt tokens that the decode engine computed itself
 * @param handshakesPerWake handshakes per wake that restored a KV cache
 * @param firstRequestMillis the slowest first request after a wake
 * @param controlMillis the median request of the awake control, its first left out
 * @param complaints what is wrong with this row, in words
 */
record CaseResult(
        @JsonProperty("case") String name,
        int cycles,
        int checked,
        int equal,
        @JsonProperty("awake_mib") double awakeMiB,
        @JsonProperty("asleep_mib") double asleepMiB,
        @JsonProperty("woken_mib") double wokenMiB,
        @JsonProperty("failed_transfers") long failedTransfers,
        @JsonProperty("remote_reads") long remoteReads,
        @JsonProperty("recomputed_tokens") long recomputedTokens,
        @JsonProperty("handshakes_per_wake") double handshakesPerWake,
        @JsonProperty("first_request_ms") double firstRequestMillis,
        @JsonProperty("control_ms") double controlMillis,
        List<String> complaints) {
    boolean ok() {
        return complaints.isEmpty();
    }

    /** The same row with more outputs compared, and more complaints. */
    CaseResult plus(int moreChecked, int moreEqual, List<String> moreComplaints) {
        return new CaseResult(
                name,
                cycles,
                checked + moreChecked,
                equal + moreEqual,
                awakeMiB,
                asleepMiB,
                wokenMiB,
                failedTransfers,
                remoteReads,
                recomputedTokens,
                handshakesPerWake,
                firstRequestMillis,
                controlMillis,
                Stream.concat(complaints.stream(), moreComplaints.stream()).toList());
    }
}
