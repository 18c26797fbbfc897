package dev.dormouse.cli.bench.costs;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.bench.serve.LoadClient;
import dev.dormouse.cli.bench.serve.Percentiles;
import dev.dormouse.cli.bench.serve.Prompts;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.FleetException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.DoubleStream;

/**
 * What the first request after a wake waits longer than the one before the sleep, of an engine
 * alone and of a pair of which both slept; and the processor time of engines that have nothing to
 * do.
 *
 * <p>The prompt is short, so that its computation does not hide the difference. Level 1 keeps the
 * weights; all of the KV cache comes and goes.
 */
final class SleepCost implements Part {
    private static final String PART = "wake";
    private static final String IDLE = "idle";
    private static final double LATER_LIMIT_MILLIS = 10;
    private static final double IDLE_LIMIT_PERCENT = 1;

    /** Requests before a sleep, of which the last counts. */
    private static final int BEFORE = 3;

    private record Round(double before, double after, double sleep, double wake) {}

    @Override
    public List<Figure> measure(Bench bench) {
        bench.progress().say("wake: starting");
        try (BenchFleet fleet = BenchFleet.pair(bench.setting(), List.of(), List.of())) {
            return measure(bench, fleet);
        }
    }

    /** Leaves both engines asleep. */
    static List<Figure> measure(Bench bench, BenchFleet fleet) {
        try (LoadClient direct = LoadClient.of(fleet.prefill().endpoint().base());
                LoadClient routed = LoadClient.of(fleet.base())) {
            Prompts prompts = Prompts.of(direct, new SplittableRandom(1));
            bench.warmUp(routed, prompts);
            List<EngineProcess> both = List.of(fleet.prefill(), fleet.decode());
            List<Figure> figures = new ArrayList<>();
            figures.addAll(
                    wakes(bench, "an engine alone", direct, prompts, List.of(fleet.prefill())));
            figures.addAll(wakes(bench, "prefill and decode engine", routed, prompts, both));
            figures.addAll(idle(bench, fleet, "awake"));
            both.forEach(engine -> engine.sleep(1, "wait"));
            figures.addAll(idle(bench, fleet, "asleep"));
            return figures;
        }
    }

    private static List<Figure> wakes(
            Bench bench,
            String who,
            LoadClient client,
            Prompts prompts,
            List<EngineProcess> sleepers) {
        bench.progress().say("wake: " + who);
        List<Round> rounds = new ArrayList<>();
        var _ = wake(client, prompts, sleepers);
        for (int i = 0; i < bench.amounts().rounds(); i++) {
            rounds.add(wake(client, prompts, sleepers));
        }
        return List.of(
                millis(who + ": a request", rounds.stream().mapToDouble(Round::before)),
                millis(who + ": the first after a wake", rounds.stream().mapToDouble(Round::after)),
                millis(
                                who + ": how much longer that is",
                                rounds.stream().mapToDouble(each -> each.after() - each.before()))
                        .atMost(LATER_LIMIT_MILLIS),
                millis(who + ": sleep", rounds.stream().mapToDouble(Round::sleep)),
                millis(who + ": wake", rounds.stream().mapToDouble(Round::wake)));
    }

    private static Figure millis(String name, DoubleStream values) {
        return Figure.of(PART, name, Percentiles.median(values), "ms");
    }

    private static Round wake(LoadClient client, Prompts prompts, List<EngineProcess> sleepers) {
        List<JsonNode> fresh = prompts.next(BEFORE + 1, Bench.SHORT_PROMPT);
        double before = 0;
        for (JsonNode prompt : fresh.subList(0, BEFORE)) {
            before = firstToken(client, prompt);
        }
        long startNanos = System.nanoTime();
        sleepers.forEach(engine -> engine.sleep(1, "wait"));
        long asleepNanos = System.nanoTime();
        sleepers.forEach(EngineProcess::wake);
        long awakeNanos = System.nanoTime();
        return new Round(
                before,
                firstToken(client, fresh.getLast()),
                (asleepNanos - startNanos) / Bench.NANOS_PER_MILLI,
                (awakeNanos - asleepNanos) / Bench.NANOS_PER_MILLI);
    }

    private static double firstToken(LoadClient client, JsonNode prompt) {
        return Bench.ask(client, prompt, Bench.SHORT_ANSWER).firstTokenNanos()
                / Bench.NANOS_PER_MILLI;
    }

    private static List<Figure> idle(Bench bench, BenchFleet fleet, String state) {
        bench.progress().say("idle: " + state);
        pause(bench.amounts().window()); // the JVM still compiles what was used
        List<EngineProcess> engines = List.of(fleet.prefill(), fleet.decode());
        List<Double> before =
                engines.stream().map(each -> Bench.processorSeconds(each.pid())).toList();
        long startNanos = System.nanoTime();
        pause(bench.amounts().window());
        List<Double> after =
                engines.stream().map(each -> Bench.processorSeconds(each.pid())).toList();
        double seconds = (System.nanoTime() - startNanos) / 1e9;
        List<Figure> figures = new ArrayList<>();
        for (int i = 0; i < engines.size(); i++) {
            double percent = (after.get(i) - before.get(i)) / seconds * 100;
            figures.add(
                    Figure.of(
                                    IDLE,
                                    engines.get(i).name() + " engine, " + state + ", of a core",
                                    percent,
                                    "%")
                            .atMost(IDLE_LIMIT_PERCENT));
        }
        return figures;
    }

    private static void pause(Duration duration) {
        try {
            Thread.sleep(duration);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }
}
