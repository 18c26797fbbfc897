package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.testkit.Await;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a scrape shows. */
class ServerMetricsTest extends ServerFixture {
    @Test
    void figuresOfEngineAndRequestsAreShown() {
        engine.samples =
                List.of(
                        new dev.dormouse.connector.TransferStatistics.TransferSample(
                                0.02, 0.001, 1 << 20, 12));
        post(200, "/v1/completions", "{\"prompt\":\"x\"}");
        String metrics = send("GET", "/metrics", "").body();
        String labels = "{engine=\"0\",model_name=\"fake-model\"} ";
        assertThat(metrics)
                .contains("vllm:nixl_xfer_time_seconds_count" + labels + "1")
                .contains("vllm:nixl_num_failed_transfers_total" + labels + "6.0")
                .contains("vllm:nixl_num_failed_notifications_total" + labels + "3.0")
                .contains("vllm:nixl_num_kv_expired_reqs_total" + labels + "6.0")
                .contains("dormouse:nixl_handshakes_total" + labels + "4.0")
                .contains("dormouse:prompt_tokens_computed_total" + labels + "60.0")
                .contains("vllm:num_requests_running" + labels + "1.0")
                .contains("vllm:time_to_first_token_seconds_count" + labels + "1")
                .contains(
                        "vllm:engine_sleep_state{engine=\"0\",model_name=\"fake-model\",sleep_state=\"awake\"} 1.0")
                .contains(
                        "vllm:sleep_mode_operation_duration_seconds_count{engine=\"0\",model_name=\"fake-model\",operation=\"sleep\"} 1")
                .contains(
                        "vllm:sleep_mode_operation_duration_seconds_count{engine=\"0\",model_name=\"fake-model\",operation=\"wake\"} 0");
    }

    @Test
    void everySeriesIsThereAtTheStartWithItsHelpAndType() throws Exception {
        engine.idle = true;
        String golden;
        try (java.io.InputStream file =
                java.util.Objects.requireNonNull(
                        ServerMetricsTest.class.getResourceAsStream("metrics-at-start.txt"))) {
            golden = new String(file.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
        }
        // Buckets are listed by their bounds in their own test.
        List<String> lines =
                send("GET", "/metrics", "")
                        .body()
                        .lines()
                        .filter(line -> !line.contains("_bucket{"))
                        .sorted()
                        .toList();
        assertThat(lines).containsExactlyElementsOf(golden.lines().sorted().toList());
    }

    @ParameterizedTest
    @CsvSource({
        "vllm:nixl_xfer_time_seconds, 0.005 0.01 0.025 0.05 0.075 0.1 0.2 0.3 0.5 0.75 1.0 5.0 +Inf",
        "vllm:nixl_post_time_seconds, 0.001 0.005 0.01 0.025 0.05 0.075 0.1 0.2 0.3 0.5 0.75 1.0 5.0 +Inf",
        "vllm:nixl_bytes_transferred, 2048.0 8192.0 32768.0 131072.0 524288.0 2097152.0 8388608.0 3.3554432E7 1.34217728E8 5.36870912E8 2.147483648E9 8.589934592E9 +Inf",
        "vllm:nixl_num_descriptors, 10.0 20.0 30.0 50.0 75.0 100.0 200.0 400.0 1000.0 2000.0 4000.0 10000.0 20000.0 50000.0 +Inf"
    })
    void transfersHaveVllmsBuckets(String name, String bounds) {
        assertThat(
                        send("GET", "/metrics", "")
                                .body()
                                .lines()
                                .filter(line -> line.startsWith(name + "_bucket{"))
                                .map(line -> line.replaceAll(".*le=\"([^\"]+)\".*", "$1")))
                .containsExactly(bounds.split(" ", -1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "AWAKE|0||awake",
                "PAUSED|0||awake",
                "ASLEEP|0|SCHEDULING|",
                "ASLEEP|1|WEIGHTS KV_CACHE|weights_offloaded",
                "ASLEEP|1|WEIGHTS|weights_offloaded",
                "ASLEEP|1|KV_CACHE|",
                "ASLEEP|2|WEIGHTS KV_CACHE|discard_all",
                "ASLEEP|2|WEIGHTS|discard_all",
                "FAILED|0||"
            })
    void sleepGaugesTellPhaseTagsAndWhereTheWeightsAre(
            Phase phase, int level, @Nullable String asleep, @Nullable String sleepState) {
        Set<WakeTag> tags =
                asleep == null
                        ? Set.of()
                        : Stream.of(asleep.split(" ", -1))
                                .map(WakeTag::valueOf)
                                .collect(Collectors.toSet());
        engine.state = new EngineState(phase, level, tags, phase != Phase.AWAKE);
        assertThat(ones("vllm:engine_sleep_state", "sleep_state"))
                .isEqualTo(sleepState == null ? Set.of() : Set.of(sleepState));
        assertThat(ones("dormouse:engine_phase", "phase"))
                .containsExactly(phase.name().toLowerCase(java.util.Locale.ROOT));
        assertThat(ones("dormouse:engine_tag_awake", "tag"))
                .isEqualTo(
                        Stream.of(WakeTag.values())
                                .filter(tag -> !tags.contains(tag))
                                .map(WakeTag::wireName)
                                .collect(Collectors.toSet()));
    }

    /** The label's values for which the gauge is 1. */
    private Set<String> ones(String name, String label) {
        return send("GET", "/metrics", "")
                .body()
                .lines()
                .filter(line -> line.startsWith(name + "{") && line.endsWith(" 1.0"))
                .map(line -> line.replaceAll(".*" + label + "=\"([^\"]+)\".*", "$1"))
                .collect(Collectors.toSet());
    }

    @Test
    void transitionsUnderWayAndFailedOnesAreCounted() {
        CompletableFuture<TransitionReport> pending = new CompletableFuture<>();
        engine.pending = pending;
        CompletableFuture<JsonNode> sleep =
                CompletableFuture.supplyAsync(() -> control(503, "/sleep", ""));
        String inFlight = "vllm:sleep_mode_operations_in_flight";
        Await.until("a sleep", () -> ones(inFlight, "operation").equals(Set.of("sleep")));
        pending.completeExceptionally(
                new TransitionRefusedException(Reason.UNAVAILABLE, "did not end"));
        sleep.join();
        engine.pending = null;
        engine.refusal = new TransitionRefusedException(Reason.CONFLICT, "not now");
        control(409, "/wake_up", "");
        assertThat(ones(inFlight, "operation")).isEmpty();
        assertThat(ones("dormouse:transition_failures_total", "operation"))
                .containsExactly("sleep");
    }

    @Test
    void eachChoiceIsMeasuredOnItsOwn() {
        post(200, "/v1/completions", "{\"prompt\":\"x\",\"n\":3}");
        String metrics = send("GET", "/metrics", "").body();
        String labels = "{engine=\"0\",model_name=\"fake-model\"} ";
        assertThat(metrics)
                .contains("vllm:time_to_first_token_seconds_count" + labels + "3")
                .contains("vllm:inter_token_latency_seconds_count" + labels + "3")
                .contains("vllm:e2e_request_latency_seconds_count" + labels + "3");
    }
}
