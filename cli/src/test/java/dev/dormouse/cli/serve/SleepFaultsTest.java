package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.serve.Faults.Often;
import dev.dormouse.cli.serve.FaultyEngine.Answer;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Every step of a sleep and of a wake fails once, fails always, fails while it is undone, or takes
 * long, in an engine of one rank and of three, over the real NIXL and the machine's memory. What is
 * judged is what its clients see over HTTP: statuses, states, figures, tokens, and the next try.
 */
final class SleepFaultsTest {
    private static final Duration LIMIT = Duration.ofMinutes(1);
    private static final String SLEEP = "/sleep?level=2";
    private static final String WAKE = "/wake_up";

    /** Steps of a sleep in their order; {@code R} stands for a rank. */
    private static final List<String> SLEEP_STEPS =
            List.of(
                    "drain true",
                    "revoke",
                    "withdraw",
                    "prepare release R",
                    "release list R",
                    "deregister R",
                    "unmap weights R",
                    "unmap kv_cache R");

    private static final List<String> WAKE_STEPS =
            List.of(
                    "map weights R",
                    "map kv_cache R",
                    "load R",
                    "register R",
                    "metadata R",
                    "prepare list R",
                    "publish");

    /** A step of a sleep, and one of its undoing. */
    private static final List<List<String>> SLEEPS_NOT_UNDONE =
            List.of(
                    List.of("revoke", "publish"),
                    List.of("withdraw", "publish"),
                    List.of("prepare release R", "publish"),
                    List.of("unmap weights R", "register 0"),
                    List.of("unmap kv_cache R", "load 0"),
                    List.of("unmap kv_cache R", "map weights 0"),
                    List.of("unmap kv_cache R", "publish"));

    private static final List<List<String>> WAKES_NOT_UNDONE =
            List.of(
                    List.of("load R", "unmap weights R"),
                    List.of("register R", "unmap kv_cache 0"),
                    List.of("publish", "withdraw"),
                    List.of("publish", "deregister R"));

    @TempDir private static Path folder;

    private static Path weights;
    private static FaultyEngine control;
    private static final Map<Integer, FaultySubject> SUBJECTS = new TreeMap<>();
    private static final ExecutorService CALLERS = Executors.newCachedThreadPool();

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        Path model = folder.resolve("tiny");
        weights = TinyModelFolder.write(model);
        control = new FaultyEngine(model, "control", 1, false);
    }

    private static FaultySubject subject(int ranks) {
        return new FaultySubject(folder.resolve("tiny"), control, ranks);
    }

    /** A test that fails shall not make others fail. */
    @AfterEach
    void heal() {
        for (FaultySubject subject : List.copyOf(SUBJECTS.values())) {
            subject.engine.faults.heal();
            if (!subject.isAwake()) {
                SUBJECTS.values().remove(subject);
                subject.close();
            }
        }
    }

    @AfterAll
    static void stop() {
        CALLERS.shutdownNow();
        SUBJECTS.values().forEach(FaultySubject::close);
        control.close();
        Await.until(
                "no thread is left",
                LIMIT,
                () -> ownThreads().isEmpty(),
                () -> ownThreads().toString());
    }

    private static List<String> ownThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("dormouse-"))
                .toList();
    }

    private static FaultySubject of(int ranks) {
        return SUBJECTS.computeIfAbsent(ranks, SleepFaultsTest::subject);
    }

    private static Stream<Arguments> cases(List<String> steps) {
        return Stream.of(1, 3)
                .flatMap(
                        ranks ->
                                steps.stream()
                                        .flatMap(
                                                step ->
                                                        Stream.of(Often.values())
                                                                .map(
                                                                        often ->
                                                                                Arguments.of(
                                                                                        ranks,
                                                                                        on(
                                                                                                step,
                                                                                                ranks),
                                                                                        often))));
    }

    /** The step on the only rank, or on the one in the middle. */
    private static String on(String step, int ranks) {
        return step.replace("R", Integer.toString(ranks / 2));
    }

    /** Only what is held is taken back. */
    private static void holdPromptFor(FaultySubject subject, String step) {
        if (step.equals("revoke")) {
            subject.holdPrompt();
        }
    }

    static Stream<Arguments> sleepSteps() {
        return cases(SLEEP_STEPS);
    }

    static Stream<Arguments> wakeSteps() {
        return cases(WAKE_STEPS);
    }

    @ParameterizedTest
    @MethodSource("sleepSteps")
    void aSleepThatFailsIsUndoneAndTheEngineServesOn(int ranks, String step, Often often) {
        FaultySubject subject = of(ranks);
        subject.requireServing();
        holdPromptFor(subject, step);
        subject.engine.faults.fail(step, often);
        subject.fails(SLEEP, "sleep", step + ": made to fail");
        assertThat(subject.engine.faults.isArmed(step)).isEqualTo(often == Often.ALWAYS);
        if (!step.equals("revoke")) { // what is held is held on
            subject.requireServing();
        }
        subject.engine.faults.heal();
        subject.made(SLEEP);
        subject.requireAsleep();
        subject.made(WAKE);
        subject.requireServing();
    }

    static Stream<Arguments> peerSteps() {
        return cases(List.of("drop peer R", "release peer's list R"));
    }

    /** A peer that cannot be dropped is tried again, before the sleep is given up. */
    @ParameterizedTest
    @MethodSource("peerSteps")
    void aPeerThatCannotBeDroppedOnceCostsNothingAndOneThatStaysTheSleep(
            int ranks, String step, Often often) {
        FaultySubject subject = of(ranks);
        subject.requireServing();
        subject.engine.faults.fail(step, often);
        if (often == Often.ALWAYS) {
            subject.fails(SLEEP, "sleep", "still loaded");
            subject.engine.faults.heal();
            subject.requireServing();
        }
        subject.made(SLEEP);
        subject.requireAsleep();
        subject.made(WAKE);
        subject.requireServing();
    }

    @ParameterizedTest
    @MethodSource("wakeSteps")
    void aWakeThatFailsIsUndoneAndTheEngineSleepsOn(int ranks, String step, Often often) {
        FaultySubject subject = of(ranks);
        double epoch = subject.epoch();
        subject.made(SLEEP);
        subject.engine.faults.fail(step, often);
        subject.fails(WAKE, "wake", step + ": made to fail");
        assertThat(subject.engine.faults.isArmed(step)).isEqualTo(often == Often.ALWAYS);
        subject.requireAsleep();
        assertThat(subject.epoch()).isEqualTo(epoch);
        subject.engine.faults.heal();
        subject.made(WAKE);
        assertThat(subject.epoch()).isEqualTo(epoch + 1);
        subject.requireServing();
    }

    static Stream<Arguments> sleepsNotUndone() {
        return notUndone(SLEEPS_NOT_UNDONE);
    }

    static Stream<Arguments> wakesNotUndone() {
        return notUndone(WAKES_NOT_UNDONE);
    }

    private static Stream<Arguments> notUndone(List<List<String>> pairs) {
        return Stream.of(1, 3)
                .flatMap(
                        ranks ->
                                pairs.stream()
                                        .map(
                                                pair ->
                                                        Arguments.of(
                                                                ranks,
                                                                on(pair.getFirst(), ranks),
                                                                on(pair.getLast(), ranks))));
    }

    @ParameterizedTest
    @MethodSource("sleepsNotUndone")
    void aSleepThatCannotBeUndoneEndsTheEngineTruthfully(int ranks, String step, String undoing) {
        try (FaultySubject subject = subject(ranks)) {
            holdPromptFor(subject, step);
            subject.engine.faults.fail(step, Often.ALWAYS);
            subject.engine.faults.fail(undoing, Often.ALWAYS);
            CompletableFuture<Answer> running = completionUntil(subject, "sleep");
            subject.fails("/sleep?level=2&mode=keep", "sleep", "could not be undone");
            assertThat(running.join().status()).isEqualTo(500);
            requireFailed(subject);
        }
    }

    @ParameterizedTest
    @MethodSource("wakesNotUndone")
    void aWakeThatCannotBeUndoneEndsTheEngineTruthfully(int ranks, String step, String undoing) {
        try (FaultySubject subject = subject(ranks)) {
            CompletableFuture<Answer> kept = completionUntil(subject, "sleep");
            subject.made("/sleep?level=2&mode=keep");
            subject.engine.faults.fail(step, Often.ALWAYS);
            subject.engine.faults.fail(undoing, Often.ALWAYS);
            subject.fails(WAKE, "wake", "could not be undone");
            assertThat(kept.join().status()).isEqualTo(500);
            requireFailed(subject);
        }
    }

    /** A completion of which one token is not computed before that operation is asked for. */
    private static CompletableFuture<Answer> completionUntil(
            FaultySubject subject, String operation) {
        Faults.Hold hold = subject.engine.faults.hold("forward");
        CompletableFuture<Answer> running =
                CompletableFuture.supplyAsync(
                        () ->
                                subject.engine.post(
                                        "/v1/completions",
                                        FaultySubject.request("a long story", 200, null)),
                        CALLERS);
        hold.awaitReached();
        CALLERS.execute(
                () -> {
                    Await.until(
                            "the call",
                            LIMIT,
                            () -> inFlight(subject, operation) == 1,
                            () -> inFlight(subject, operation));
                    hold.release();
                });
        return running;
    }

    /** Also once the fault is gone. */
    private static void requireFailed(FaultySubject subject) {
        subject.engine.faults.heal();
        assertThat(subject.engine.get("/health").status()).isEqualTo(503);
        assertThat(subject.engine.get("/ready").status()).isEqualTo(503);
        subject.requireState("failed", false);
        subject.requireRefused();
        double failures = subject.failures("");
        for (String call : List.of(SLEEP, WAKE, "/resume", "/pause")) {
            Answer answer = subject.engine.control(call);
            assertThat(answer.status()).as("%s: %s", call, answer.body()).isEqualTo(409);
        }
        assertThat(subject.failures("")).as("calls that were not in order").isEqualTo(failures);
    }

    static Stream<String> slowSleepSteps() {
        return Stream.concat(SLEEP_STEPS.stream(), Stream.of("trim")).map(step -> on(step, 3));
    }

    static Stream<String> slowWakeSteps() {
        return WAKE_STEPS.stream().map(step -> on(step, 3));
    }

    @ParameterizedTest
    @MethodSource("slowSleepSteps")
    void whileASleepTakesLongRequestsAreRefusedAndAnotherSleepFindsNothingToDo(String step) {
        FaultySubject subject = of(3);
        subject.requireServing();
        holdPromptFor(subject, step);
        requireSerialised(subject, step, SLEEP, "sleep");
        subject.requireAsleep();
        subject.made(WAKE);
        subject.requireServing();
    }

    @ParameterizedTest
    @MethodSource("slowWakeSteps")
    void whileAWakeTakesLongRequestsAreRefusedAndAnotherWakeFindsNothingToDo(String step) {
        FaultySubject subject = of(3);
        subject.made(SLEEP);
        double epoch = subject.epoch();
        requireSerialised(subject, step, WAKE, "wake");
        assertThat(subject.epoch()).isEqualTo(epoch + 1);
        subject.requireServing();
    }

    private static void requireSerialised(
            FaultySubject subject, String step, String call, String operation) {
        double failures = subject.failures("");
        Faults.Hold hold = subject.engine.faults.hold(step);
        CompletableFuture<Answer> first = later(subject, call);
        hold.awaitReached();
        try {
            CompletableFuture<Answer> second = later(subject, call);
            Await.until(
                    "both calls are under way",
                    LIMIT,
                    () -> inFlight(subject, operation) == 2,
                    () -> inFlight(subject, operation));
            assertThat(subject.engine.get("/health").status()).isEqualTo(200);
            assertThat(subject.engine.get("/ready").status()).isEqualTo(503);
            subject.requireRefused();
            assertThat(first).isNotDone();
            assertThat(second).isNotDone();
            hold.release();
            assertThat(first.join().body().path("changed").asBoolean()).isTrue();
            assertThat(second.join().status()).isEqualTo(200);
            assertThat(second.join().body().path("changed").asBoolean()).isFalse();
        } finally {
            hold.release();
        }
        assertThat(inFlight(subject, operation)).isZero();
        assertThat(subject.failures("")).isEqualTo(failures);
    }

    private static CompletableFuture<Answer> later(FaultySubject subject, String call) {
        return CompletableFuture.supplyAsync(() -> subject.engine.control(call), CALLERS);
    }

    private static double inFlight(FaultySubject subject, String operation) {
        return subject.engine.metric(
                "vllm:sleep_mode_operations_in_flight", "operation=\"" + operation + "\"");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void aDrainWaitsForAReaderAndIsEndedByAResume(int ranks) {
        FaultySubject subject = of(ranks);
        subject.requireServing();
        double failures = subject.failures("");
        FaultySubject.HandedOver held = subject.holdPrompt();

        CompletableFuture<Answer> cancelled = later(subject, "/sleep?level=2&mode=wait");
        awaitRefusal(subject);
        assertThat(cancelled).isNotDone();
        assertThat(subject.engine.control("/resume").status()).isEqualTo(200);
        assertThat(cancelled.join().status()).isEqualTo(409);
        assertThat(subject.failures("")).as("it was not a failure").isEqualTo(failures);

        CompletableFuture<Answer> waiting = later(subject, "/sleep?level=2&mode=wait");
        awaitRefusal(subject);
        subject.read(held);
        assertThat(waiting.join().body().path("changed").asBoolean()).isTrue();
        subject.requireAsleep();
        subject.made(WAKE);
        subject.requireServing();
    }

    private static void awaitRefusal(FaultySubject subject) {
        Await.until(
                "it drains",
                LIMIT,
                () -> subject.engine.get("/ready").status() == 503,
                () -> subject.engine.get("/is_sleeping").body());
        subject.requireRefused();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void weightsThatChangedInTheFileAreNeverServed(int ranks) throws IOException {
        FaultySubject subject = of(ranks);
        subject.requireServing();
        subject.made(SLEEP);
        byte[] right = Files.readAllBytes(weights);
        byte[] wrong = right.clone();
        wrong[wrong.length - 2] ^= 1;
        // In place, since the engine has the file open.
        Files.write(weights, wrong);
        try {
            subject.fails(WAKE, "wake", "has changed since it was loaded first");
            subject.requireAsleep();
            subject.fails("/wake_up?tags=weights", "wake", "has changed since it was loaded first");
            subject.requireAsleep();
        } finally {
            Files.write(weights, right);
        }
        subject.made(WAKE);
        subject.requireServing();
    }

    @Test
    void aHeapThatCannotBeTrimmedKeepsNobodyAwake() {
        FaultySubject subject = of(1);
        subject.engine.faults.fail("trim", Often.ALWAYS);
        subject.made(SLEEP);
        subject.requireAsleep();
        subject.made(WAKE);
        subject.requireServing();
    }

    /** Whatever is called at the same time: each call ends, and no token is wrong. */
    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void callsFromAllSidesAreMadeOneAfterTheOther(int ranks) {
        FaultySubject subject = of(ranks);
        subject.requireServing();
        double failures = subject.failures("");
        List<CompletableFuture<Void>> callers =
                IntStream.range(0, 5)
                        .mapToObj(
                                seed ->
                                        CompletableFuture.runAsync(
                                                () -> call(subject, seed), CALLERS))
                        .toList();
        CompletableFuture<?> all =
                CompletableFuture.allOf(callers.toArray(CompletableFuture[]::new));
        while (!all.isDone()) {
            subject.requireRightOrRefused();
        }
        all.join();
        assertThat(subject.failures("")).isEqualTo(failures);
        assertThat(subject.engine.control(WAKE).status()).isEqualTo(200);
        assertThat(subject.engine.control("/resume").status()).isEqualTo(200);
        subject.requireServing();
    }

    private static void call(FaultySubject subject, int seed) {
        SplittableRandom random = new SplittableRandom(seed);
        List<String> calls =
                List.of(
                        "/sleep?level=%d&mode=abort",
                        "/sleep?level=%d&mode=keep",
                        "/sleep?level=%d&mode=wait",
                        WAKE,
                        WAKE,
                        "/wake_up?tags=weights",
                        "/wake_up?tags=kv_cache&tags=scheduling",
                        "/pause?mode=keep",
                        "/resume",
                        "/resume",
                        "/release_kv_cache_memory",
                        "/reset_prefix_cache");
        for (int i = 0; i < 25; i++) {
            String path = calls.get(random.nextInt(calls.size())).formatted(random.nextInt(3));
            Answer answer = subject.engine.control(path);
            assertThat(answer.status()).as("%s: %s", path, answer.body()).isIn(200, 409);
        }
    }
}
