package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.testkit.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

/** The engine on its own thread, called by others. */
final class LocalEngineTest {
    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness started() {
        EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector);
        harness.engine.start();
        return harness;
    }

    @Test
    void requestsOfManyThreadsGetTheirTokens() throws InterruptedException {
        try (EngineHarness harness = started()) {
            List<RecordingListener> listeners = new ArrayList<>();
            List<Thread> clients = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                int number = i;
                RecordingListener listener = new RecordingListener();
                listeners.add(listener);
                clients.add(
                        Thread.startVirtualThread(
                                () ->
                                        harness.engine.submit(
                                                new GenerationRequest(
                                                        "r" + number,
                                                        prompt(number, 5 + number),
                                                        SamplingParameters.greedy(10),
                                                        null),
                                                listener)));
            }
            for (Thread client : clients) {
                client.join();
            }
            for (int i = 0; i < 20; i++) {
                RecordingListener listener = listeners.get(i);
                Await.until("request " + i + " ends", listener::isOver);
                assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt(i, 5 + i), 10));
            }
        }
    }

    @Test
    void eachRankCanWakeTheLoop() {
        try (EngineHarness _ = started()) {
            assertThat(connector.ranks).isNotEmpty().allMatch(FakeConnector.Rank::canWake);
        }
    }

    @Test
    void parallelTransitionsAreMadeOneAfterTheOther() throws InterruptedException {
        try (EngineHarness harness = started()) {
            LocalEngine engine = harness.engine;
            List<Thread> callers = new ArrayList<>();
            List<CompletableFuture<TransitionReport>> outcomes = new ArrayList<>();
            List<RecordingListener> listeners = new ArrayList<>();
            for (int caller = 0; caller < 6; caller++) {
                SplittableRandom random = new SplittableRandom(caller);
                int number = caller;
                callers.add(
                        Thread.startVirtualThread(
                                () -> {
                                    for (int i = 0; i < 15; i++) {
                                        CompletableFuture<TransitionReport> outcome =
                                                random.nextBoolean()
                                                        ? engine.sleep(
                                                                random.nextInt(3),
                                                                EngineHarness.anyMode(random))
                                                        : engine.wake(null);
                                        synchronized (outcomes) {
                                            outcomes.add(outcome);
                                            listeners.add(
                                                    harness.submit(
                                                            "r" + number + "." + i,
                                                            prompt(number, 9),
                                                            5));
                                        }
                                        var _ = outcome.join();
                                    }
                                }));
            }
            for (Thread caller : callers) {
                caller.join();
            }
            outcomes.add(engine.wake(null));
            for (CompletableFuture<TransitionReport> outcome : outcomes) {
                Await.until("a transition's end", outcome::isDone);
            }
            assertThat(outcomes).noneMatch(CompletableFuture::isCompletedExceptionally);
            assertThat(engine.state().phase()).isEqualTo(Phase.AWAKE);
            List<List<Integer>> oracles = new ArrayList<>();
            for (int caller = 0; caller < 6; caller++) {
                oracles.add(HashModel.oracle(prompt(caller, 9), 5));
            }
            for (RecordingListener listener : listeners) {
                Await.until("a request's end", listener::isOver);
                List<Integer> tokens = listener.tokens();
                assertThat(oracles).anyMatch(oracle -> startsWith(oracle, tokens));
            }
            long publications =
                    connector.calls.stream().filter(call -> call.startsWith("publish")).count();
            long releases =
                    connector.calls.stream().filter(call -> call.startsWith("release")).count();
            assertThat(publications).isEqualTo(releases + 1);
        }
    }

    private static boolean startsWith(List<Integer> whole, List<Integer> start) {
        return whole.subList(0, start.size()).equals(start);
    }

    @Test
    void closingEndsRequestsTransitionsAndParts() {
        EngineHarness harness = started();
        RecordingListener held = harness.submit("d", prompt(1, 9), 1, FakeConnector.remoteDecode());
        Await.until("the prompt is held", held::isOver);
        RecordingListener running = harness.submit("long", prompt(1, 9), 190);
        CompletableFuture<TransitionReport> sleep = harness.engine.sleep(1, PauseMode.KEEP);
        harness.close();
        harness.close();

        assertThat(running.isOver()).isTrue();
        assertThatThrownBy(sleep::join)
                .isInstanceOf(CompletionException.class)
                .hasCauseInstanceOf(TransitionRefusedException.class);
        assertThat(harness.engine.state().phase()).isEqualTo(Phase.CLOSED);
        assertThat(harness.model().isClosed()).isTrue();
        assertThat(connector.ranks.getFirst().isClosed).isTrue();
        assertThat(connector.scheduling.isClosed()).isTrue();
        RecordingListener late = harness.submit("late", prompt(1, 9), 1);
        assertThat(late.failed().kind()).isEqualTo(GenerationEvent.FailureKind.UNAVAILABLE);
        assertThatThrownBy(() -> harness.engine.wake(null).join())
                .hasCauseInstanceOf(TransitionRefusedException.class);
    }

    @Test
    void anEngineThatCannotStartSaysWhy() {
        connector.failPublish = true;
        EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector);

        assertThatThrownBy(harness.engine::start).hasMessageContaining("publish: made to fail");
        harness.close();
        assertThat(harness.model().isClosed()).isTrue();
        assertThat(connector.ranks.getFirst().isClosed).isTrue();
    }

    @Test
    void anErrorOfTheLoopIsTruthfullyReported() {
        try (EngineHarness harness = started()) {
            connector.failPoll = true;
            Await.until("the engine fails", () -> harness.engine.state().phase() == Phase.FAILED);
            RecordingListener late = harness.submit("late", prompt(1, 9), 1);
            Await.until("the refusal", late::isOver);

            assertThat(late.failed().message()).contains("failed");
        }
    }

    @Test
    void everyMessageIsAnsweredAlsoIfTheEngineFailsWithOneOfThem() {
        EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector);
        connector.failArrivalOf = "bad";
        connector.failFinish = true;
        List<RecordingListener> listeners = new ArrayList<>();
        for (String id : List.of("before", "bad", "after")) {
            listeners.add(harness.submit(id, prompt(1, 9), 5));
        }
        CompletableFuture<TransitionReport> sleep = harness.engine.sleep(1, PauseMode.WAIT);
        try (harness) {
            harness.engine.start();
            for (RecordingListener listener : listeners) {
                Await.until("a request's end", listener::isOver);
                assertThat(listener.failed().kind())
                        .isEqualTo(GenerationEvent.FailureKind.INTERNAL);
                assertThat(listener.eventsAfterLast()).isZero();
            }
            Await.until("the transition's end", sleep::isDone);
            assertThat(sleep).isCompletedExceptionally();
            assertThat(harness.engine.state().phase()).isEqualTo(Phase.FAILED);
        }
    }

    @Test
    void aSleepingEngineWaitsForLittleButMessages() {
        try (EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector).opened()) {
            EngineCore core = harness.engine.core();
            assertThat(core.expectation()).isEqualTo(EngineCore.Expectation.CONNECTION);
            harness.submit("p", prompt(1, 9), 1, FakeConnector.remoteDecode());
            harness.settle();
            assertThat(core.expectation()).isEqualTo(EngineCore.Expectation.PEER);
            harness.submit("d", prompt(2, 9), 1, connector.remotePrefill(prompt(2, 9)));
            harness.settle();
            assertThat(core.expectation()).isEqualTo(EngineCore.Expectation.READ);
            connector.endRead(connector.reads.keySet().iterator().next(), true);
            connector.endHold(connector.held.iterator().next());
            harness.made(harness.engine.sleep(1, PauseMode.ABORT));
            assertThat(core.expectation()).isEqualTo(EngineCore.Expectation.LITTLE);
        }
    }

    @Test
    void asleepPeersMessagesAreStillTakenAndOrdersStillGiven() {
        try (EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector).opened()) {
            harness.made(harness.engine.sleep(1, PauseMode.ABORT));
            FakeConnector.Rank rank = connector.ranks.getFirst();
            int polls = rank.polls;
            int steps = rank.steps;
            harness.engine.core().step();
            assertThat(rank.polls).isEqualTo(polls + 1);
            assertThat(rank.steps).isEqualTo(steps + 1);
        }
    }

    @Test
    void anEngineThatHasFailedIsNotFoundByOthersAndStillTakesTheirMessages() {
        try (EngineHarness harness = new EngineHarness(EngineHarness.roomy(), connector).opened()) {
            harness.engine.core().fail(new IllegalStateException("made to fail"));
            assertThat(connector.calls).endsWith("withdraw");
            FakeConnector.Rank rank = connector.ranks.getFirst();
            int polls = rank.polls;
            connector.failPoll = true;
            harness.engine.core().step();
            assertThat(rank.polls).isEqualTo(polls + 1);
        }
    }
}
