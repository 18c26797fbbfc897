package dev.dormouse.cli.soak;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Engines that are told to end, or killed, while they compute for many clients, and come back.
 * Whoever is told to end breaks nothing off: its requests are answered, and new ones refused.
 */
final class EndingEnginesTest {
    private static final int CLIENTS = 16;
    private static final int QUESTIONS = 24;
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final long SEED = Long.getLong("dormouse.seed", 1);

    /** While no engine of a role is there. */
    private static final Set<String> OF_ENDS =
            with(Client.OF_SLEEPS, "prefill_unreachable", "decode_unreachable");

    /**
     * A request that goes out to a decode engine in its last moment meets a connection that closes.
     * Nobody can tell whether it was taken, and a hand-over is read once: so it is not asked again,
     * as a prefill engine is.
     */
    private static final Set<String> OF_DECODE_ENDS = with(OF_ENDS, "decode_broken");

    private static final Set<String> OF_CRASHES = with(OF_ENDS, "prefill_broken", "decode_broken");

    private final SplittableRandom random = new SplittableRandom(SEED);

    @TempDir Path logs;

    private static Set<String> with(Set<String> codes, String... more) {
        Set<String> all = new HashSet<>(codes);
        all.addAll(List.of(more));
        return Set.copyOf(all);
    }

    @BeforeAll
    static void requireNatives() {
        Natives.nixlDirectory();
    }

    /** How one engine ends; returns when it is over. */
    private interface Ending {
        void end() throws InterruptedException;
    }

    @Test
    void everyAnswerIsRightOrSaysWhyNotAndTheFleetServesOn() throws Exception {
        List<Question> questions;
        try (ChildProcess oracle = SoakFleet.startOracle(logs)) {
            questions = Question.ask(SoakFleet.endpoint(oracle), QUESTIONS, random);
        }
        try (SoakFleet fleet = new SoakFleet(logs, random)) {
            whileAsking(
                    fleet,
                    questions,
                    OF_ENDS,
                    () -> {
                        awaitWork(fleet.prefill());
                        assertThat(fleet.prefillProcess().end(LIMIT)).isZero();
                        fleet.restartPrefill();
                    });
            whileAsking(
                    fleet,
                    questions,
                    OF_DECODE_ENDS,
                    () -> {
                        awaitWork(fleet.decode());
                        assertThat(fleet.decodeProcess().end(LIMIT)).isZero();
                        fleet.restartDecode();
                    });
            whileAsking(
                    fleet,
                    questions,
                    OF_CRASHES,
                    () -> {
                        awaitWork(fleet.prefill());
                        kill(fleet.prefillProcess());
                        fleet.restartPrefill();
                    });
            whileAsking(
                    fleet,
                    questions,
                    OF_CRASHES,
                    () -> {
                        awaitWork(fleet.decode());
                        kill(fleet.decodeProcess());
                        fleet.restartDecode();
                    });
        }
    }

    private void whileAsking(
            SoakFleet fleet, List<Question> questions, Set<String> explicit, Ending ending)
            throws Exception {
        Tally tally = new Tally();
        AtomicBoolean over = new AtomicBoolean();
        List<Thread> clients =
                Client.start(
                        CLIENTS,
                        "ends-" + SEED,
                        fleet.router().base().getPort(),
                        questions,
                        random,
                        explicit,
                        tally,
                        over::get);
        try {
            awaitRight(tally, 0);
            ending.end();
            awaitRight(tally, tally.right());
        } finally {
            over.set(true);
            Client.join(clients, tally);
        }
        System.out.println(tally);
        assertThat(tally.isFaultless())
                .as("-Ddormouse.seed=%s %s\n%s", SEED, fleet.options(), tally)
                .isTrue();
        Idle.await(fleet, LIMIT);
    }

    private static void awaitRight(Tally tally, long before) {
        Await.until(
                "right answers", LIMIT, () -> tally.right() >= before + 2L * CLIENTS, () -> tally);
    }

    private static void awaitWork(EngineProcess engine) {
        Await.until(
                engine.name() + " computes",
                LIMIT,
                () -> {
                    try {
                        return Wire.get(engine.endpoint().base().getPort(), "/metrics")
                                .lines()
                                .filter(line -> line.startsWith("vllm:num_requests_running{"))
                                .noneMatch(line -> line.endsWith(" 0.0"));
                    } catch (IOException e) {
                        return false;
                    }
                },
                () -> "");
    }

    private static void kill(ChildProcess process) {
        process.kill();
        var _ = process.end(LIMIT);
    }
}
