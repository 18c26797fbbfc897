package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.Histogram;
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
        post(200, "/v1/completions", "{\"prompt\":\"x\"}");
        String metrics = send("GET", "/metrics", "").body();
        String labels = "{engine=\"0\",model_name=\"fake-model\"} ";
        assertThat(metrics)
                .contains("vllm:nixl_num_failed_transfers_total" + labels + "3211.0")
                .contains("vllm:nixl_num_failed_notifications_total" + labels + "3000.0")
                .contains("vllm:nixl_num_kv_expired_reqs_total" + labels + "70.0")
                .contains("vllm:nixl_num_notifications_after_expiry_total" + labels + "7.0")
                .contains("dormouse:nixl_failed_reads_total" + labels + "1.0")
                .contains("dormouse:nixl_late_reads_total" + labels + "10.0")
                .contains("dormouse:nixl_failed_handshakes_total" + labels + "200.0")
                .contains("dormouse:nixl_rehandshakes_total" + labels + "9.0")
                .contains("dormouse:nixl_registrations_total" + labels + "5.0")
                .contains("dormouse:kv_expired_leases_total" + labels + "60.0")
                .contains("dormouse:kv_revoked_requests_total" + labels + "11.0")
                .contains("dormouse:nixl_malformed_notifications_total" + labels + "8.0")
                .contains("dormouse:kv_revoked_mappings_total" + labels + "13.0")
                .contains("dormouse:kv_transfers_total" + byTransport("local") + "14.0")
                .contains("dormouse:kv_transfer_bytes_total" + byTransport("local") + "15.0")
                .contains("dormouse:kv_peers" + byTransport("local") + "2.0")
                .contains("dormouse:kv_peers" + byTransport("nixl") + "0.0")
                .contains("dormouse:num_requests_waiting_for_remote_kv" + labels + "3.0")
                .contains("dormouse:num_requests_held_for_remote" + labels + "4.0")
                .contains("dormouse:kv_blocks_held_for_remote" + labels + "6.0")
                .contains("dormouse:kv_blocks_quarantined" + labels + "7.0")
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

    private static String byTransport(String name) {
        return "{engine=\"0\",model_name=\"fake-model\",transport=\"" + name + "\"} ";
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
        List<String> lines =
                send("GET", "/metrics", "")
                        .body()
                        .lines()
                        .filter(line -> !line.contains("_bucket{"))
                        .sorted()
                        .toList();
        assertThat(lines).containsExactlyElementsOf(golden.lines().sorted().toList());
    }

    @Test
    void histogramsAreShownAsTheEngineFilledThemAtEveryScrape() {
        engine.transferSizes =
                new EngineStatistics.Transfers(
                        new Histogram(List.of(.005, 5.0), List.of(1L, 2L, 3L), 12.5),
                        new Histogram(List.of(.001), List.of(4L, 0L), .004),
                        new Histogram(List.of(2_048.0), List.of(0L, 6L), 1e12),
                        new Histogram(List.of(10.0), List.of(6L, 0L), 30));
        for (int scrape = 0; scrape < 2; scrape++) {
            assertThat(series("vllm:nixl_xfer_time_seconds"))
                    .containsExactlyInAnyOrder(
                            "_bucket le=0.005 1",
                            "_bucket le=5.0 3",
                            "_bucket le=+Inf 6",
                            "_count 6",
                            "_sum 12.5");
            assertThat(series("vllm:nixl_post_time_seconds"))
                    .contains("_bucket le=0.001 4", "_count 4", "_sum 0.004");
            assertThat(series("vllm:nixl_bytes_transferred"))
                    .contains("_bucket le=2048.0 0", "_bucket le=+Inf 6", "_sum 1.0E12");
            assertThat(series("vllm:nixl_num_descriptors")).contains("_bucket le=10.0 6");
        }
    }

    /** What follows the name, without the labels that all series have. */
    private List<String> series(String name) {
        return send("GET", "/metrics", "")
                .body()
                .lines()
                .filter(line -> line.startsWith(name))
                .map(line -> line.substring(name.length()))
                .map(line -> line.replaceAll("\\{engine=\"0\",model_name=\"fake-model\",?", " "))
                .map(line -> line.replaceAll("\"|}", "").replaceAll(" +", " "))
                .toList();
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
