package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.Json;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What a load gave, by the names and definitions of {@code vllm bench serve}. Only whole answers
 * count.
 *
 * @param maxConcurrency requests under way at once
 * @param completed whole answers
 * @param failures the other requests: how many there were of each reason
 * @param durationSeconds from the first request until the last answer
 * @param inputTokens of all prompts, as the server counted them
 * @param outputTokens of all answers, as the server counted them
 * @param ttftMillis from a request until its first token
 * @param tpotMillis of each answer, from its first token to its last, per token after the first
 * @param itlMillis between two events that brought tokens, of all answers
 * @param e2elMillis from a request until its last token
 */
public record ServeResult(
        int maxConcurrency,
        int completed,
        Map<String, Long> failures,
        double durationSeconds,
        long inputTokens,
        long outputTokens,
        Percentiles ttftMillis,
        Percentiles tpotMillis,
        Percentiles itlMillis,
        Percentiles e2elMillis) {
    private static final double NANOS_PER_MILLI = 1e6;

    /** Counts a load's answers. */
    public static ServeResult of(int maxConcurrency, LoadClient.Load load) {
        List<Answer.Served> served =
                load.answers().stream()
                        .filter(Answer.Served.class::isInstance)
                        .map(Answer.Served.class::cast)
                        .toList();
        Map<String, Long> failures =
                load.answers().stream()
                        .filter(Answer.Failed.class::isInstance)
                        .map(answer -> ((Answer.Failed) answer).reason())
                        .collect(
                                Collectors.groupingBy(
                                        reason -> reason,
                                        LinkedHashMap::new,
                                        Collectors.counting()));
        return new ServeResult(
                maxConcurrency,
                served.size(),
                failures,
                load.nanos() / 1e9,
                served.stream().mapToLong(Answer.Served::promptTokens).sum(),
                served.stream().mapToLong(Answer.Served::outputTokens).sum(),
                Percentiles.of(
                        served.stream()
                                .mapToDouble(each -> each.firstTokenNanos() / NANOS_PER_MILLI)),
                Percentiles.of(
                        served.stream()
                                .filter(each -> each.outputTokens() > 1)
                                .mapToDouble(ServeResult::millisPerToken)),
                Percentiles.of(
                        served.stream()
                                .map(Answer.Served::gapNanos)
                                .flatMap(Collection::stream)
                                .mapToDouble(gap -> gap / NANOS_PER_MILLI)),
                Percentiles.of(
                        served.stream()
                                .mapToDouble(each -> each.lastTokenNanos() / NANOS_PER_MILLI)));
    }

    private static double millisPerToken(Answer.Served answer) {
        return (answer.lastTokenNanos() - answer.firstTokenNanos())
                / NANOS_PER_MILLI
                / (answer.outputTokens() - 1);
    }

    long failed() {
        return failures.values().stream().mapToLong(Long::longValue).sum();
    }

    double requestsPerSecond() {
        return completed / durationSeconds;
    }

    double outputTokensPerSecond() {
        return outputTokens / durationSeconds;
    }

    double totalTokensPerSecond() {
        return (inputTokens + outputTokens) / durationSeconds;
    }

    /** Under the keys of vLLM's result file, as far as it has them. */
    ObjectNode toJson() {
        ObjectNode json = Json.MAPPER.createObjectNode();
        json.put("max_concurrency", maxConcurrency);
        json.put("completed", completed);
        json.put("failed", failed());
        json.put("duration", durationSeconds);
        json.put("total_input_tokens", inputTokens);
        json.put("total_output_tokens", outputTokens);
        json.put("request_throughput", requestsPerSecond());
        json.put("output_throughput", outputTokensPerSecond());
        json.put("total_token_throughput", totalTokensPerSecond());
        put(json, "ttft_ms", ttftMillis);
        put(json, "tpot_ms", tpotMillis);
        put(json, "itl_ms", itlMillis);
        put(json, "e2el_ms", e2elMillis);
        json.set("failures", Json.MAPPER.valueToTree(failures));
        return json;
    }

    private static void put(ObjectNode json, String name, Percentiles percentiles) {
        json.put("p50_" + name, percentiles.p50());
        json.put("p90_" + name, percentiles.p90());
        json.put("p99_" + name, percentiles.p99());
    }
}
