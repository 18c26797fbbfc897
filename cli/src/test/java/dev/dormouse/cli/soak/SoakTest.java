package dev.dormouse.cli.soak;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Mixed requests through the router while both engines sleep and wake at random: every answer is
 * the oracle's or an explicit error, and afterwards nothing is left.
 *
 * <p>The load runs twice. After that caches are filled, pools grown and hot code is compiled, so
 * what there is more of after the second run is a leak.
 *
 * <p>{@code -Ddormouse.soak.seconds=600 -Ddormouse.soak.clients=64} is the long form, {@code
 * -Ddormouse.seed=N} another load and other options of the engines.
 */
final class SoakTest {
    private static final int SECONDS = Integer.getInteger("dormouse.soak.seconds", 12);
    private static final int CLIENTS = Integer.getInteger("dormouse.soak.clients", 16);
    private static final long SEED = Long.getLong("dormouse.seed", 1);
    private static final int QUESTIONS = 48;

    private static final int SECONDS_BEFORE = Math.max(12, SECONDS / 4);

    private static final Duration REST_LIMIT = Duration.ofMinutes(2);

    /** Longer than idle connections are kept for another request. */
    private static final Duration STILL = Duration.ofSeconds(6);

    private static final long HEAP_LIMIT_BYTES = 8 << 20;
    private static final long PSS_LIMIT_BYTES = 96 << 20;

    @TempDir Path logs;

    @BeforeAll
    static void requireNatives() {
        Natives.nixlDirectory();
    }

    @Test
    void everyAnswerIsRightOrSaysWhyNotAndNothingIsLeft() throws Exception {
        SplittableRandom random = new SplittableRandom(SEED);
        List<Question> questions;
        try (ChildProcess oracle = SoakFleet.startOracle(logs)) {
            questions = Question.ask(SoakFleet.endpoint(oracle), QUESTIONS, random);
        }
        assertThat(questions.stream().map(Question::texts).distinct().count())
                .as("answers that tell one prompt's KV from another's")
                .isGreaterThan(QUESTIONS * 3 / 4);
        try (SoakFleet fleet = new SoakFleet(logs, random)) {
            Tally warmUp = load(fleet, questions, SECONDS_BEFORE, random.split());
            List<Rest> before = restOnceStill(fleet, random.split());
            Tally tally = load(fleet, questions, SECONDS, random.split());
            List<Rest> after = restOnceStill(fleet, random.split());
            List<String> left = leaks(before, after);
            String report = report(fleet, warmUp, tally, before, after, left);
            System.out.println(report);
            assertThat(warmUp.isFaultless() && tally.isFaultless()).as(report).isTrue();
            assertThat(left).as(report).isEmpty();
            assertThat(errorsInLogs()).as(report).isEmpty();
            assertThat(tally.right()).as(report).isPositive();
        }
    }

    private static List<String> leaks(List<Rest> before, List<Rest> after) {
        List<String> leaks = new ArrayList<>();
        for (int i = 0; i < after.size(); i++) {
            leaks.addAll(after.get(i).leaksSince(before.get(i), HEAP_LIMIT_BYTES, PSS_LIMIT_BYTES));
        }
        return leaks;
    }

    private static Tally load(
            SoakFleet fleet, List<Question> questions, int seconds, SplittableRandom random)
            throws InterruptedException {
        Tally tally = new Tally();
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        BooleanSupplier over = () -> System.nanoTime() - end > 0;
        List<Thread> threads =
                new ArrayList<>(
                        Client.start(
                                CLIENTS,
                                "soak-" + SEED,
                                fleet.router().base().getPort(),
                                questions,
                                random,
                                Client.OF_SLEEPS,
                                tally,
                                over));
        for (EngineProcess engine : List.of(fleet.prefill(), fleet.decode())) {
            threads.add(
                    Thread.ofPlatform()
                            .name("operator-" + engine.name())
                            .daemon()
                            .start(new Operator(engine, random.split(), tally, over)));
        }
        TimeUnit.SECONDS.sleep(seconds);
        Client.join(threads, tally);
        return tally;
    }

    /** Waits until no engine has anything to do, and until what is open stays the same. */
    private static List<Rest> restOnceStill(SoakFleet fleet, RandomGenerator random) {
        handOver(fleet, random);
        Idle.await(fleet, REST_LIMIT);
        List<Long> heaps = fleet.processes().stream().map(Rest::heapBytes).toList();
        List<Rest.Open> seen = new ArrayList<>();
        long[] since = {0};
        Await.until(
                "threads and descriptors that stay",
                REST_LIMIT,
                () -> {
                    List<Rest.Open> now = openSoon(fleet);
                    if (!now.equals(seen)) {
                        seen.clear();
                        seen.addAll(now);
                        since[0] = System.nanoTime();
                    }
                    return System.nanoTime() - since[0] > STILL.toNanos();
                },
                () -> seen);
        List<Rest> rests = new ArrayList<>();
        for (int i = 0; i < seen.size(); i++) {
            rests.add(Rest.of(fleet.processes().get(i), seen.get(i), heaps.get(i)));
        }
        return rests;
    }

    /**
     * New prompts through both engines, which are awake: what the two keep for each other while
     * they read, connections among them, is there at every rest, and none that a sleep has ended.
     */
    private static void handOver(SoakFleet fleet, RandomGenerator random) {
        Await.until(
                "answers of engines that are awake",
                () -> {
                    try {
                        return !Question.ask(fleet.router(), 4, random).isEmpty();
                    } catch (FleetException e) { // the router has not yet seen them awake
                        return false;
                    }
                });
    }

    /** Looks every now and then, not all the time. */
    private static List<Rest.Open> openSoon(SoakFleet fleet) {
        try {
            TimeUnit.MILLISECONDS.sleep(200);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
        return fleet.processes().stream().map(Rest.Open::of).toList();
    }

    private List<String> errorsInLogs() throws IOException {
        List<String> errors = new ArrayList<>();
        try (Stream<Path> files = Files.list(logs)) {
            for (Path file : files.toList()) {
                try (Stream<String> lines = Files.lines(file)) {
                    lines.filter(line -> line.contains(" ERROR ") || line.startsWith("\tat "))
                            .limit(20)
                            .forEach(line -> errors.add(file.getFileName() + ": " + line));
                }
            }
        }
        return errors;
    }

    private static String report(
            SoakFleet fleet,
            Tally warmUp,
            Tally tally,
            List<Rest> before,
            List<Rest> after,
            List<String> leaks) {
        StringBuilder text = new StringBuilder();
        text.append("-Ddormouse.seed=")
                .append(SEED)
                .append('\n')
                .append(fleet.options())
                .append('\n');
        text.append("Run before it:\n").append(warmUp);
        text.append("Judged run:\n").append(tally);
        before.forEach(rest -> text.append("  before ").append(rest).append('\n'));
        after.forEach(rest -> text.append("  after  ").append(rest).append('\n'));
        leaks.forEach(leak -> text.append("  LEFT ").append(leak).append('\n'));
        return text.toString();
    }
}
