package dev.dormouse.cli.bench.costs;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.bench.serve.LoadClient;
import dev.dormouse.cli.bench.serve.Prompts;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The throughput of prefill and decode engine together, against what the two do alone.
 *
 * <p>Each engine has half of the processors. Alone, the prefill engine is asked for one token of
 * every prompt, and the decode engine for all answers to prompts that its prefix cache has, so that
 * it only generates; the other engine is idle then. Together they cannot be done before the slower
 * one is, so the sum of what both do alone is all tokens per the longer of both times. With so many
 * clients as each had alone, the pair does all that in one time, which is compared: 1 says that the
 * hand-overs, the router and the company cost nothing. The same by processor time says what they
 * cost apart from waiting.
 */
final class ThroughputCost implements Part {
    private static final String PART = "throughput";

    /** Whole blocks, and one token more, which the decode engine has to compute in any case. */
    private static final int PROMPT_TOKENS = 129;

    private static final int OUTPUT_TOKENS = 96;
    private static final int PREFILL_CLIENTS = 2;
    private static final int DECODE_CLIENTS = 8;
    private static final double RATIO_LIMIT = 0.9;

    /** What a load took. */
    private record Taken(double seconds, double processorSeconds) {}

    @Override
    public List<Figure> measure(Bench bench) {
        bench.progress().say("throughput: starting");
        List<String> half = List.of("--threads", Integer.toString(BenchFleet.threadsOfHalf()));
        try (BenchFleet fleet = BenchFleet.pair(bench.setting(), half, half)) {
            return measure(bench, fleet);
        }
    }

    /** The decode engine must know prompts that it was asked before. */
    static List<Figure> measure(Bench bench, BenchFleet fleet) {
        int requests = bench.amounts().requests();
        try (LoadClient prefill = LoadClient.of(fleet.prefill().endpoint().base());
                LoadClient decode = LoadClient.of(fleet.decode().endpoint().base());
                LoadClient routed = LoadClient.of(fleet.base())) {
            Prompts prompts = Prompts.of(prefill, new SplittableRandom(1));
            bench.progress().say("throughput: warming up");
            List<JsonNode> warmUp = prompts.next(2 * DECODE_CLIENTS, PROMPT_TOKENS);
            var _ = Bench.load(routed, warmUp, OUTPUT_TOKENS, DECODE_CLIENTS);
            List<JsonNode> known = prompts.next(requests, PROMPT_TOKENS);
            var _ = Bench.load(decode, known, 1, DECODE_CLIENTS);
            bench.progress().say("throughput: the decode engine alone");
            Taken decodes = take(fleet, decode, known, OUTPUT_TOKENS, DECODE_CLIENTS);
            bench.progress().say("throughput: the prefill engine alone");
            List<JsonNode> others = prompts.next(requests, PROMPT_TOKENS);
            Taken prefills = take(fleet, prefill, others, 1, PREFILL_CLIENTS);
            bench.progress().say("throughput: both");
            List<JsonNode> fresh = prompts.next(requests, PROMPT_TOKENS);
            Taken both =
                    take(fleet, routed, fresh, OUTPUT_TOKENS, PREFILL_CLIENTS + DECODE_CLIENTS);
            return figures(requests, prefills, decodes, both);
        }
    }

    private static Taken take(
            BenchFleet fleet, LoadClient client, List<JsonNode> prompts, int tokens, int clients) {
        double before = processorSeconds(fleet);
        LoadClient.Load load = Bench.load(client, prompts, tokens, clients);
        return new Taken(load.nanos() / 1e9, processorSeconds(fleet) - before);
    }

    private static double processorSeconds(BenchFleet fleet) {
        return fleet.pids().stream().mapToDouble(Bench::processorSeconds).sum();
    }

    private static List<Figure> figures(int requests, Taken prefills, Taken decodes, Taken both) {
        double slower = Math.max(prefills.seconds(), decodes.seconds());
        double tokens = (double) requests * (PROMPT_TOKENS + OUTPUT_TOKENS);
        return List.of(
                Figure.of(
                        PART,
                        "prompts, the prefill engine alone",
                        requests * PROMPT_TOKENS / prefills.seconds(),
                        "tok/s"),
                Figure.of(
                        PART,
                        "answers, the decode engine alone",
                        requests * OUTPUT_TOKENS / decodes.seconds(),
                        "tok/s"),
                Figure.of(
                        PART,
                        "prompts and answers, at the pace of the slower one",
                        tokens / slower,
                        "tok/s"),
                Figure.of(
                        PART,
                        "prompts and answers, both engines together",
                        tokens / both.seconds(),
                        "tok/s"),
                Figure.of(PART, "of the sum of both alone", slower / both.seconds(), "")
                        .atLeast(RATIO_LIMIT),
                Figure.of(
                        PART,
                        "the same by processor time",
                        (prefills.processorSeconds() + decodes.processorSeconds())
                                / both.processorSeconds(),
                        ""));
    }
}
