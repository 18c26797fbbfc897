package dev.dormouse.cli.bench.costs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class CostsBenchTest {
    private static final Part.Amounts FEW = new Part.Amounts(3, 1, 40, 2, Duration.ofMillis(90));

    @TempDir private Path folder;

    @Test
    void aFigureIsKeptUpToItsLimit() {
        Figure figure = Figure.of("wake", "longer", 10, "ms");
        assertThat(figure.kept()).isTrue();
        assertThat(figure.atMost(10).kept()).isTrue();
        assertThat(figure.atMost(9.9).kept()).isFalse();
        assertThat(figure.atLeast(10).kept()).isTrue();
        assertThat(figure.atLeast(10.1).kept()).isFalse();
        assertThat(figure.atMost(9).line()).endsWith("10.00 ms    at most 9.00, missed");
        assertThat(figure.line()).endsWith("10.00 ms");
    }

    @Test
    void everyPartOfAPairTellsWhatItCosts() {
        Natives.nixlDirectory();
        Path model = folder.resolve("tiny");
        TinyModelFolder.write(model);
        BenchFleet.Setting setting = new BenchFleet.Setting(TinyProcess::start, model, folder);
        Bench bench = new Bench(setting, FEW, new Progress(System.err));
        List<Figure> figures = new ArrayList<>();
        try (BenchFleet fleet =
                BenchFleet.pair(setting, List.of("--no-enable-prefix-caching"), List.of())) {
            figures.addAll(HandOverCost.measure(bench, fleet));
            figures.addAll(ThroughputCost.measure(bench, fleet));
            figures.addAll(SleepCost.measure(bench, fleet));
            JsonNode state = Json.parse(fleet.decode().admin().get("/is_sleeping"));
            assertThat(state.path("is_sleeping").asBoolean()).isTrue();
        }
        assertThat(figures.stream().map(Figure::part))
                .contains("hand-over", "throughput", "wake", "idle");
        double firstToken = value(figures, "first token, prefill and decode engine");
        assertThat(value(figures, "of that the read")).isPositive().isLessThan(firstToken);
        assertThat(value(figures, "of it in the decode engine"))
                .isPositive()
                .isLessThan(firstToken);
        assertThat(value(figures, "of the sum of both alone")).isPositive();
        assertThat(value(figures, "an engine alone: wake")).isPositive();
    }

    @Test
    void theReportHasStartsAndMemory() throws IOException {
        Natives.nixlDirectory();
        Path model = folder.resolve("tiny");
        TinyModelFolder.write(model);
        Path json = folder.resolve("report.json");
        StringWriter out = new StringWriter();
        int status =
                new CommandLine(new CostsBench(TinyProcess::start, FEW))
                        .setOut(new PrintWriter(out))
                        .setErr(new PrintWriter(out))
                        .execute(
                                "--parts",
                                "start",
                                "--model",
                                model.toString(),
                                "--json",
                                json.toString());
        assertThat(status).as("%s", out).isZero();
        JsonNode figures = Json.parse(Files.readString(json)).path("figures");
        assertThat(figures.findValuesAsText("part")).hasSize(5).containsOnly("start");
        JsonNode memory = figures.path(4);
        assertThat(memory.path("name").asText()).isEqualTo("memory over weights and KV cache");
        assertThat(memory.path("value").asDouble()).isGreaterThan(1);
        assertThat(memory.path("atMost").asDouble()).isEqualTo(1.3);
        assertThat(memory.has("atLeast")).isFalse();
        assertThat(out.toString()).contains("an engine alone serves after");
    }

    private static double value(List<Figure> figures, String name) {
        return figures.stream()
                .filter(figure -> figure.name().equals(name))
                .mapToDouble(Figure::value)
                .findFirst()
                .orElseThrow(() -> new AssertionError(name + " is not among " + figures));
    }
}
