package dev.dormouse.cli.bench.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;

final class ServeResultTest {
    private static final long MILLI = 1_000_000;

    /** 5 tokens, in gaps of 10, 20, 30 and 40 ms after a first token at 100 ms. */
    private static final Answer LONG =
            new Answer.Served(
                    20,
                    5,
                    100 * MILLI,
                    List.of(10 * MILLI, 20 * MILLI, 30 * MILLI, 40 * MILLI),
                    200 * MILLI);

    /** One token. */
    private static final Answer SHORT =
            new Answer.Served(10, 1, 300 * MILLI, List.of(), 300 * MILLI);

    private static final Answer FAILED = new Answer.Failed("503: asleep");

    private static ServeResult of(Answer... answers) {
        return ServeResult.of(2, new LoadClient.Load(List.of(answers), 2_000 * MILLI));
    }

    @Test
    void percentilesLieBetweenValuesInProportion() {
        Percentiles ten = Percentiles.of(DoubleStream.of(10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
        assertThat(ten.p50()).isEqualTo(5.5);
        assertThat(ten.p90()).isCloseTo(9.1, within(1e-9));
        assertThat(ten.p99()).isCloseTo(9.91, within(1e-9));
        assertThat(Percentiles.of(DoubleStream.of(3))).isEqualTo(new Percentiles(3, 3, 3));
        assertThat(Percentiles.of(DoubleStream.empty())).isEqualTo(new Percentiles(0, 0, 0));
        assertThat(Percentiles.median(DoubleStream.of(9, 1, 2))).isEqualTo(2);
    }

    @Test
    void onlyWholeAnswersCount() {
        ServeResult result = of(LONG, FAILED, SHORT, FAILED);
        assertThat(result.completed()).isEqualTo(2);
        assertThat(result.failures()).isEqualTo(Map.of("503: asleep", 2L));
        assertThat(result.inputTokens()).isEqualTo(30);
        assertThat(result.outputTokens()).isEqualTo(6);
        assertThat(result.requestsPerSecond()).isEqualTo(1);
        assertThat(result.outputTokensPerSecond()).isEqualTo(3);
        assertThat(result.totalTokensPerSecond()).isEqualTo(18);
        assertThat(result.ttftMillis().p50()).isEqualTo(200);
        assertThat(result.e2elMillis().p50()).isEqualTo(250);
        assertThat(result.itlMillis().p50()).isEqualTo(25);
    }

    @Test
    void timePerTokenIsWithoutTheFirstToken() {
        assertThat(of(LONG, SHORT).tpotMillis()).isEqualTo(new Percentiles(25, 25, 25));
    }

    @Test
    void jsonHasTheNamesOfVllm() {
        JsonNode json = of(LONG, FAILED).toJson();
        assertThat(json.fieldNames())
                .toIterable()
                .contains(
                        "max_concurrency",
                        "completed",
                        "failed",
                        "duration",
                        "total_input_tokens",
                        "total_output_tokens",
                        "request_throughput",
                        "output_throughput",
                        "total_token_throughput",
                        "p50_ttft_ms",
                        "p90_tpot_ms",
                        "p99_itl_ms",
                        "p99_e2el_ms");
        assertThat(json.path("completed").asInt()).isEqualTo(1);
        assertThat(json.path("failed").asInt()).isEqualTo(1);
        assertThat(json.path("p50_ttft_ms").asDouble()).isEqualTo(100);
        assertThat(json.path("failures").path("503: asleep").asInt()).isEqualTo(1);
    }

    @Test
    void theTableSaysWhatFailed() {
        assertThat(ServeTable.of(List.of(of(LONG), of(SHORT, FAILED))).lines())
                .anyMatch(
                        line ->
                                line.matches(
                                        "Output token throughput \\(tok/s\\): +2\\.50 +0\\.50"))
                .anyMatch(line -> line.matches("Failed requests: +0 +1"))
                .contains("FAILED 1 of concurrency 2: 503: asleep");
    }
}
