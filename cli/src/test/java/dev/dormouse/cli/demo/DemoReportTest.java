package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Json;
import java.util.HashSet;
import java.util.List;
import org.junit.jupiter.api.Test;

class DemoReportTest {
    private static CaseResult row(List<String> complaints) {
        return new CaseResult(
                "sleep-prefill", 3, 30, 30, 500, 200, 501, 0, 30, 0, 1.0, 210, 180, complaints);
    }

    private static DemoReport report(int equalWhenBlind, CaseResult... cases) {
        return new DemoReport(
                "m", "nixl", new DemoReport.Blindness(30, equalWhenBlind), List.of(cases));
    }

    @Test
    void isOkOnlyIfNoRowComplainsAndWrongKvShows() {
        assertThat(report(0, row(List.of())).ok()).isTrue();
        assertThat(report(0, row(List.of()), row(List.of("1 of 30 outputs differ"))).ok())
                .isFalse();
        assertThat(report(4, row(List.of())).ok()).isFalse();
    }

    @Test
    void jsonHasTheAgreedNames() {
        JsonNode json = Json.parse(report(0, row(List.of())).toJson());
        assertThat(json.path("ok").asBoolean()).isTrue();
        assertThat(json.path("model").asText()).isEqualTo("m");
        assertThat(json.path("transport").asText()).isEqualTo("nixl");
        JsonNode first = json.path("cases").path(0);
        assertThat(first.fieldNames())
                .toIterable()
                .contains(
                        "case",
                        "cycles",
                        "checked",
                        "equal",
                        "awake_mib",
                        "asleep_mib",
                        "woken_mib",
                        "failed_transfers",
                        "remote_reads",
                        "handshakes_per_wake",
                        "first_request_ms",
                        "control_ms");
        assertThat(first.path("case").asText()).isEqualTo("sleep-prefill");
    }

    @Test
    void theTableSaysWhatIsWrong() {
        String table = report(0, row(List.of("2 of 30 outputs differ"))).toTable();
        assertThat(table)
                .contains("WRONG  sleep-prefill: 2 of 30 outputs differ")
                .contains("The demonstration failed.");
    }

    @Test
    void theFaultShowsOnlyIfNoOutputIsRightNobodySaysSoAndNothingCameBack() {
        assertThat(fault(0, 0, 500).ok()).isTrue();
        assertThat(fault(1, 0, 500).ok()).as("an output is right").isFalse();
        assertThat(fault(0, 1, 500).ok()).as("somebody says so").isFalse();
        assertThat(fault(0, 0, 244).ok()).as("the memory came back").isFalse();
        assertThat(fault(0, 0, 500).toTable())
                .contains("0 of 30 outputs equal after the wake, 0 errors; asleep 0 of 256 MiB");
        assertThat(Json.parse(fault(0, 0, 500).toJson()).path("ok").asBoolean()).isTrue();
    }

    private static FaultReport fault(int equal, long failed, double asleepMiB) {
        CaseResult sleep =
                new CaseResult(
                        "sleep-prefill",
                        1,
                        30,
                        equal,
                        500,
                        asleepMiB,
                        756,
                        failed,
                        30,
                        0,
                        1.0,
                        210,
                        180,
                        List.of("30 of 30 outputs differ"));
        return new FaultReport("m", "local", 256, List.of(row(List.of()), sleep));
    }

    @Test
    void everyKindOfFaultIsComplainedAbout() {
        Judgement judgement = new Judgement();
        judgement.outputs(10, 9);
        judgement.transfers(new Counters(9, 1, 1, 290), new Counters(0, 0, 0, 0), 10);
        judgement.handshakes(2, 1);
        judgement.memory(500, 300, 500, 256);
        judgement.memory(500, 240, 600, 256);
        judgement.errors(1, 20);
        assertThat(judgement.complaints())
                .containsExactly(
                        "1 of 10 outputs differ",
                        "1 transfers failed",
                        "9 remote reads instead of 10",
                        "the decode engine computed 290 prompt tokens itself",
                        "2 handshakes instead of 1",
                        "asleep only 200 MiB of a KV cache of 256 MiB came back",
                        "woken it holds 100 MiB more than before",
                        "1 of 20 requests failed");
    }

    @Test
    void aSoundCaseIsNotComplainedAbout() {
        Judgement judgement = new Judgement();
        judgement.outputs(10, 10);
        judgement.transfers(new Counters(10, 1, 0, 0), new Counters(0, 0, 0, 3000), 10);
        judgement.handshakes(1, 1);
        judgement.memory(500, 245, 502, 256);
        judgement.errors(0, 20);
        assertThat(judgement.complaints()).isEmpty();
    }

    @Test
    void countersSumOverLabelsAndRefuseAMissingName() {
        String text =
                """
                # HELP x y
                vllm:nixl_xfer_time_seconds_count{rank="0"} 3
                vllm:nixl_xfer_time_seconds_count{rank="1"} 4.0
                dormouse:nixl_handshakes_total 1.0
                vllm:nixl_num_failed_transfers_total 0.0
                dormouse:prompt_tokens_computed_total{model_name="a b"} 1.2E3
                """;
        assertThat(Counters.parse(text)).isEqualTo(new Counters(7, 1, 0, 1200));
        assertThatThrownBy(() -> Counters.parse(""))
                .hasMessageContaining("vllm:nixl_xfer_time_seconds_count");
    }

    @Test
    void promptsAreDistinctAndAFewHundredTokensLong() {
        List<String> prompts = DemoPrompts.first(DemoPrompts.available());
        assertThat(new HashSet<>(prompts)).hasSize(prompts.size());
        assertThat(prompts)
                .allSatisfy(prompt -> assertThat(prompt.split("\\s+").length).isBetween(130, 300));
    }
}
