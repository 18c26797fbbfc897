package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** What a scrape shows. */
class ServerMetricsTest extends ServerFixture {
    @Test
    void metricsHaveVllmsNamesAndEverySeriesFromTheStart() {
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
}
