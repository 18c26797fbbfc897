package dev.dormouse.cli.bench.costs;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.bench.serve.Answer;
import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.bench.serve.LoadClient;
import dev.dormouse.cli.bench.serve.Percentiles;
import dev.dormouse.cli.bench.serve.Prompts;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.ToDoubleFunction;

/**
 * What a hand-over adds to a prompt's first token: the same prompt through the router, and of the
 * prefill engine asked directly, which is the engine alone, with as many threads and code that is
 * as warm.
 *
 * <p>The prompt's computation, which is the same in both, takes a hundred times longer than the
 * difference, and varies by more than it. So its time, as the engine counts it in each, is taken
 * out: what is compared is the rest of the time until the first token.
 */
final class HandOverCost implements Part {
    private static final String PART = "hand-over";
    private static final String FIRST_TOKEN = "vllm:time_to_first_token_seconds";
    private static final String READ = "vllm:nixl_xfer_time_seconds";
    private static final int OUTPUT_TOKENS = 8;
    private static final int WARM_UPS = 4;
    private static final double ADDED_LIMIT_MILLIS = 15;

    /** A prompt's two ways, in milliseconds. */
    private record Round(
            double direct,
            double routed,
            double restDirect,
            double restRouted,
            double decodeEngine,
            double read,
            double step) {}

    @Override
    public List<Figure> measure(Bench bench) {
        bench.progress().say("hand-over: starting");
        try (BenchFleet fleet =
                BenchFleet.pair(
                        bench.setting(), List.of("--no-enable-prefix-caching"), List.of())) {
            return measure(bench, fleet);
        }
    }

    /** The prefill engine must not know prompts that it was asked before. */
    static List<Figure> measure(Bench bench, BenchFleet fleet) {
        try (LoadClient direct = LoadClient.of(fleet.prefill().endpoint().base());
                LoadClient routed = LoadClient.of(fleet.base())) {
            Prompts prompts = Prompts.of(direct, new SplittableRandom(1));
            bench.progress().say("hand-over: warming up");
            bench.warmUp(routed, prompts);
            List<Round> rounds = new ArrayList<>();
            int all = WARM_UPS + bench.amounts().rounds();
            for (int i = 0; i < all; i++) {
                bench.progress().say("hand-over: round " + (i + 1) + " of " + all);
                JsonNode prompt = prompts.next(1, bench.amounts().promptTokens()).getFirst();
                Round round = round(fleet, direct, routed, prompt);
                if (i >= WARM_UPS) {
                    rounds.add(round);
                }
            }
            return figures(rounds);
        }
    }

    private static Round round(
            BenchFleet fleet, LoadClient direct, LoadClient routed, JsonNode prompt) {
        Metrics prefill0 = Metrics.of(fleet.prefill(), FIRST_TOKEN);
        double alone = firstToken(Bench.ask(direct, prompt, OUTPUT_TOKENS));
        Metrics prefill1 = Metrics.of(fleet.prefill(), FIRST_TOKEN);
        Metrics decode1 = Metrics.of(fleet.decode(), FIRST_TOKEN);
        Metrics reads1 = Metrics.of(fleet.decode(), READ);
        Answer.Served answer = Bench.ask(routed, prompt, OUTPUT_TOKENS);
        double apart = firstToken(answer);
        Metrics prefill2 = Metrics.of(fleet.prefill(), FIRST_TOKEN);
        return new Round(
                alone,
                apart,
                alone - prefill1.meanMillisSince(prefill0, 1),
                apart - prefill2.meanMillisSince(prefill1, 1),
                Metrics.of(fleet.decode(), FIRST_TOKEN).meanMillisSince(decode1, 1),
                Metrics.of(fleet.decode(), READ).meanMillisSince(reads1, 1),
                Percentiles.median(
                        answer.gapNanos().stream()
                                .mapToDouble(gap -> gap / Bench.NANOS_PER_MILLI)));
    }

    private static double firstToken(Answer.Served answer) {
        return answer.firstTokenNanos() / Bench.NANOS_PER_MILLI;
    }

    private static List<Figure> figures(List<Round> rounds) {
        return List.of(
                figure("first token, the engine alone", rounds, Round::direct),
                figure("first token, prefill and decode engine", rounds, Round::routed),
                figure(
                        "from the prefill engine's to the decode engine's token",
                        rounds,
                        Round::restRouted),
                figure("of it in the decode engine", rounds, Round::decodeEngine),
                figure("of that the read", rounds, Round::read),
                figure("a decode step, for comparison", rounds, Round::step),
                figure(
                                "added to the first token",
                                rounds,
                                round -> round.restRouted() - round.restDirect())
                        .atMost(ADDED_LIMIT_MILLIS));
    }

    private static Figure figure(String name, List<Round> rounds, ToDoubleFunction<Round> millis) {
        return Figure.of(PART, name, Percentiles.median(rounds.stream().mapToDouble(millis)), "ms");
    }
}
