package dev.dormouse.cli.bench.serve;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** The table of {@code vllm bench serve}, with a column for each load. */
final class ServeTable {
    private final List<ServeResult> results;
    private final List<String> lines = new ArrayList<>();

    private ServeTable(List<ServeResult> results) {
        this.results = results;
    }

    static String of(List<ServeResult> results) {
        ServeTable table = new ServeTable(results);
        table.count("Maximum request concurrency:", ServeResult::maxConcurrency);
        table.count("Successful requests:", ServeResult::completed);
        table.count("Failed requests:", ServeResult::failed);
        table.row("Benchmark duration (s):", ServeResult::durationSeconds);
        table.count("Total input tokens:", ServeResult::inputTokens);
        table.count("Total generated tokens:", ServeResult::outputTokens);
        table.row("Request throughput (req/s):", ServeResult::requestsPerSecond);
        table.row("Output token throughput (tok/s):", ServeResult::outputTokensPerSecond);
        table.row("Total token throughput (tok/s):", ServeResult::totalTokensPerSecond);
        table.rows("TTFT", ServeResult::ttftMillis);
        table.rows("TPOT", ServeResult::tpotMillis);
        table.rows("ITL", ServeResult::itlMillis);
        table.rows("E2EL", ServeResult::e2elMillis);
        for (ServeResult result : results) {
            result.failures()
                    .forEach(
                            (reason, count) ->
                                    table.lines.add(
                                            "FAILED %d of concurrency %d: %s"
                                                    .formatted(
                                                            count,
                                                            result.maxConcurrency(),
                                                            reason)));
        }
        return String.join(System.lineSeparator(), table.lines);
    }

    private void rows(String name, Function<ServeResult, Percentiles> percentiles) {
        row("P50 " + name + " (ms):", result -> percentiles.apply(result).p50());
        row("P90 " + name + " (ms):", result -> percentiles.apply(result).p90());
        row("P99 " + name + " (ms):", result -> percentiles.apply(result).p99());
    }

    private void row(String name, ToDoubleFunction<ServeResult> value) {
        line(name, result -> String.format(Locale.ROOT, "%12.2f", value.applyAsDouble(result)));
    }

    private void count(String name, Function<ServeResult, Number> value) {
        line(name, result -> String.format(Locale.ROOT, "%12d", value.apply(result).longValue()));
    }

    private void line(String name, Function<ServeResult, String> cell) {
        StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "%-33s", name));
        results.forEach(result -> line.append(cell.apply(result)));
        lines.add(line.toString());
    }
}
