package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Random requests, aborts, reads, hand-overs and transitions in random order on small caches. Every
 * output must be what the model gives alone, and in the end every block must be free.
 */
final class EnginePropertyTest {
    private static final int CASES = 150;
    private static final int ACTIONS = 120;

    private record Asked(String id, List<Integer> prompt, int count, RecordingListener listener) {}

    @Test
    void noHistoryChangesATokenOrLosesABlock() {
        Seeded.forAll(CASES, random -> new Run(random).play());
    }

    private static final class Run {
        private final SplittableRandom random;
        private final @Nullable FakeConnector connector;
        private final EngineHarness engine;
        private final List<Asked> asked = new ArrayList<>();
        private final List<CompletableFuture<TransitionReport>> transitions = new ArrayList<>();
        private final Set<String> pastIds = new HashSet<>();

        Run(SplittableRandom random) {
            this.random = random;
            this.connector =
                    random.nextInt(4) == 0 ? null : new FakeConnector(1 + random.nextInt(2));
            int maxSequences = 1 + random.nextInt(5);
            EngineConfig config =
                    EngineHarness.config(
                            10 + random.nextInt(16),
                            maxSequences,
                            maxSequences + random.nextInt(20),
                            random.nextBoolean());
            this.engine =
                    new EngineHarness(
                                    random.nextInt(3) == 0
                                            ? EngineHarness.holding(config, 1000)
                                            : config,
                                    connector)
                            .opened();
        }

        void play() {
            try (engine) {
                for (int i = 0; i < ACTIONS; i++) {
                    act(i);
                }
                endAll();
                check();
            }
        }

        private void act(int number) {
            switch (random.nextInt(12)) {
                case 0, 1, 2 -> ask(number);
                case 3 -> abortOne();
                case 4, 5 -> endOneRead(random.nextInt(4) != 0);
                case 6 -> endOneHold();
                case 7 -> reportNonsense();
                case 8 -> {
                    if (random.nextInt(2) == 0) {
                        transitions.add(randomTransition());
                    }
                }
                default -> {
                    for (int steps = random.nextInt(6); steps >= 0; steps--) {
                        engine.step();
                    }
                }
            }
        }

        private void ask(int number) {
            int length = 1 + random.nextInt(20);
            // Few different prompts, so that prefixes are shared.
            List<Integer> prompt = Prompts.prompt(random.nextInt(3), length);
            int count = 1 + random.nextInt(15);
            String id = "r" + number;
            RecordingListener listener;
            if (connector != null && random.nextInt(3) == 0) {
                listener = engine.submit(id, prompt, count, remotePrefill(connector, prompt));
            } else if (connector != null && random.nextInt(3) == 0) {
                count = 1;
                listener = engine.submit(id, prompt, count, FakeConnector.remoteDecode());
            } else {
                listener = engine.submit(id, prompt, count, random.nextInt(-1, 2));
            }
            asked.add(new Asked(id, prompt, count, listener));
        }

        private KvTransferParams remotePrefill(FakeConnector from, List<Integer> prompt) {
            return random.nextBoolean()
                    ? from.remotePrefill(prompt)
                    : from.remotePrefill(
                            prompt,
                            SamplingParameters.greedy(1),
                            HashModel.oracle(prompt, 1).getFirst());
        }

        private void abortOne() {
            if (!asked.isEmpty()) {
                engine.engine.abort(asked.get(random.nextInt(asked.size())).id());
            }
        }

        private void endOneRead(boolean good) {
            if (connector != null) {
                connector.reads.keySet().stream()
                        .findFirst()
                        .ifPresent(
                                id -> {
                                    pastIds.add(id);
                                    connector.endRead(id, good);
                                });
            }
        }

        private void endOneHold() {
            if (connector != null) {
                connector.held.stream()
                        .findFirst()
                        .ifPresent(
                                id -> {
                                    pastIds.add(id);
                                    connector.endHold(id);
                                    engine.step();
                                });
            }
        }

        private void reportNonsense() {
            if (connector != null && !connector.ranks.getFirst().isReleased()) {
                FakeConnector.Rank rank = connector.ranks.getFirst();
                // With several ranks one rank's nonsense would be half of a later true report.
                if (connector.ranks.size() == 1) {
                    engine.step();
                    rank.sent.addAll(pastIds);
                    rank.received.addAll(pastIds);
                    rank.failed.addAll(pastIds);
                }
            }
        }

        private CompletableFuture<TransitionReport> randomTransition() {
            PauseMode mode = EngineHarness.anyMode(random);
            return switch (random.nextInt(9)) {
                case 0, 1 -> engine.engine.sleep(random.nextInt(3), mode);
                case 2 -> engine.engine.pause(mode, random.nextBoolean());
                case 3 -> engine.engine.resume();
                case 4 -> engine.engine.wake(Set.of(WakeTag.WEIGHTS));
                case 5 -> engine.engine.wake(Set.of(WakeTag.KV_CACHE));
                case 6 -> engine.engine.releaseKvCacheMemory();
                case 7 -> engine.engine.resetPrefixCache();
                default -> engine.engine.wake(null);
            };
        }

        private void endAll() {
            transitions.add(engine.engine.wake(null));
            transitions.add(engine.engine.resume());
            engine.stepUntil(
                    "everything ends, but state is "
                            + engine.engine.state()
                            + ", statistics "
                            + engine.engine.statistics(),
                    () -> {
                        endOneRead(random.nextBoolean());
                        if (connector != null) {
                            connector.held.forEach(connector::endHold);
                        }
                        return transitions.stream().allMatch(CompletableFuture::isDone)
                                && asked.stream().allMatch(one -> one.listener().isOver())
                                && (connector == null
                                        || (connector.reads.isEmpty() && connector.held.isEmpty()));
                    });
            engine.settle();
        }

        private void check() {
            assertThat(engine.engine.state().phase()).isEqualTo(Phase.AWAKE);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(engine.engine.statistics().heldForRemote()).isZero();
            if (connector != null) {
                assertThat(connector.calls).noneMatch(call -> call.endsWith("while reads run"));
            }
            assertThat(engine.engine.statistics().waitingForRemoteKv()).isZero();
            for (Asked one : asked) {
                List<Integer> oracle = HashModel.oracle(one.prompt(), one.count());
                List<Integer> tokens = one.listener().tokens();
                assertThat(one.listener().eventsAfterLast()).isZero();
                assertThat(tokens).isEqualTo(oracle.subList(0, tokens.size()));
                switch (one.listener().last()) {
                    case GenerationEvent.Finished finished -> {
                        switch (finished.reason()) {
                            case LENGTH -> assertThat(tokens).hasSize(one.count());
                            case ABORT -> {}
                            case STOP -> throw new AssertionError("nothing stops here");
                        }
                    }
                    case GenerationEvent.Failed failed ->
                            assertThat(failed.kind())
                                    .isIn(FailureKind.PAUSED, FailureKind.UNAVAILABLE);
                    case null, default -> throw new AssertionError(one + " did not end");
                }
            }
        }
    }
}
