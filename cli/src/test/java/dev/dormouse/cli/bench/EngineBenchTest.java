package dev.dormouse.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.serve.TinyModelFolder;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class EngineBenchTest {
    private static final List<String> WORKLOADS =
            List.of(
                    "prefill 128",
                    "prefill 512",
                    "decode 1",
                    "decode 8",
                    "decode 16",
                    "decode 1 after 960");

    @TempDir private Path directory;

    @Test
    void tableAndJsonHaveTheSameRowsWithWhatBoundsThem() throws Exception {
        Path model = directory.resolve("model");
        TinyModelFolder.write(model);
        Path json = directory.resolve("rates.json");
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new EngineBench()).setOut(new PrintWriter(out));

        int status =
                command.execute(
                        "--model",
                        model.toString(),
                        "--threads",
                        "1",
                        "--repetitions",
                        "1",
                        "--json",
                        json.toString());

        assertThat(status).isZero();
        JsonNode report = Json.parse(Files.readString(json));
        assertThat(report.path("threads").asInt()).isEqualTo(1);
        assertThat(report.path("memory_read_gb_per_s").asDouble()).isPositive();
        List<String> rows = new ArrayList<>();
        for (JsonNode rate : report.path("rates")) {
            rows.add(rate.path("workload").asText());
            for (String figure :
                    List.of("tokens_per_s", "gflop_per_s", "read_gb_per_s", "read_ratio")) {
                assertThat(rate.path(figure).asDouble()).as("%s of %s", figure, rate).isPositive();
            }
        }
        assertThat(rows).isEqualTo(WORKLOADS);
        assertThat(out.toString().lines().skip(2))
                .zipSatisfy(WORKLOADS, (row, workload) -> assertThat(row).startsWith(workload));
    }
}
