package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;

/**
 * Who is computed when: by urgency, everybody in the end, and nobody who generates stands still.
 */
final class SchedulingTest {
    private static final int CASES = 60;

    private static EngineHarness engine(EngineConfig config) {
        return new EngineHarness(config, null).opened();
    }

    @Test
    void theSmallestPriorityComesFirstAndOfEqualsWhoCameFirst() {
        Seeded.forAll(
                CASES,
                random -> {
                    try (EngineHarness engine = engine(EngineHarness.config(64, 1, 8, true))) {
                        Map<String, RecordingListener> listeners = new HashMap<>();
                        List<String> expected = new ArrayList<>();
                        for (int priority = -2; priority <= 2; priority++) {
                            for (int i = random.nextInt(3); i >= 0; i--) {
                                expected.add(priority + " " + expected.size());
                            }
                        }
                        List<String> arrivals = mixed(expected, random);
                        for (String id : arrivals) {
                            int priority = Integer.parseInt(id.split(" ", -1)[0]);
                            listeners.put(id, engine.submit(id, prompt(1, 5), 2, priority));
                        }
                        assertThat(ended(engine, listeners)).isEqualTo(expected);
                    }
                });
    }

    /** In random order, but equal priorities in theirs. */
    private static List<String> mixed(List<String> ids, RandomGenerator random) {
        List<List<String>> queues = new ArrayList<>();
        for (String id : ids) {
            String priority = id.split(" ", -1)[0];
            if (queues.isEmpty() || !queues.getLast().getFirst().startsWith(priority + " ")) {
                queues.add(new ArrayList<>());
            }
            queues.getLast().add(id);
        }
        List<String> mixed = new ArrayList<>();
        while (!queues.isEmpty()) {
            List<String> queue = queues.get(random.nextInt(queues.size()));
            mixed.add(queue.removeFirst());
            queues.removeIf(List::isEmpty);
        }
        return mixed;
    }

    /** The ids in the order in which they end. */
    private static List<String> ended(
            EngineHarness engine, Map<String, RecordingListener> listeners) {
        List<String> ended = new ArrayList<>();
        engine.stepUntil(
                "all end",
                () -> {
                    listeners.forEach(
                            (id, listener) -> {
                                if (listener.isOver() && !ended.contains(id)) {
                                    ended.add(id);
                                }
                            });
                    return ended.size() == listeners.size();
                });
        return ended;
    }

    @Test
    void theLeastUrgentGivesItsBlocksAlsoIfItIsTheOldest() {
        try (EngineHarness engine = engine(EngineHarness.config(9, 4, 16, false))) {
            RecordingListener late = engine.submit("late", prompt(0, 6), 20, 5);
            RecordingListener first = engine.submit("first", prompt(1, 6), 20, 0);
            RecordingListener second = engine.submit("second", prompt(2, 6), 20, 0);
            List<String> ended =
                    ended(engine, Map.of("late", late, "first", first, "second", second));

            assertThat(engine.engine.statistics().preemptions()).isPositive();
            assertThat(ended).containsExactly("first", "second", "late");
            assertThat(late.tokens()).isEqualTo(HashModel.oracle(prompt(0, 6), 20));
        }
    }

    @Test
    void whoGeneratesGetsATokenInEachStepWhateverPromptsAreComputedBeside() {
        Seeded.forAll(
                CASES,
                random -> {
                    int sequences = 2 + random.nextInt(6);
                    EngineConfig config =
                            EngineHarness.config(
                                    64 * sequences, sequences, sequences + random.nextInt(4), true);
                    try (EngineHarness engine = engine(config)) {
                        List<RecordingListener> all = new ArrayList<>();
                        for (int step = 0; step < 120; step++) {
                            if (random.nextInt(4) == 0) {
                                int length = random.nextBoolean() ? 150 : 1 + random.nextInt(9);
                                all.add(
                                        engine.submit(
                                                "r" + step,
                                                prompt(step, length),
                                                2 + random.nextInt(30),
                                                random.nextInt(2)));
                            }
                            Map<RecordingListener, Integer> generating = new HashMap<>();
                            for (RecordingListener one : all) {
                                if (!one.tokens().isEmpty() && !one.isOver()) {
                                    generating.put(one, one.tokens().size());
                                }
                            }
                            engine.step();
                            generating.forEach(
                                    (one, tokens) -> assertThat(one.tokens()).hasSize(tokens + 1));
                        }
                    }
                });
    }

    @Test
    void aLongRequestEndsUnderAnEndlessStreamOfShortOnes() {
        Seeded.forAll(
                CASES,
                random -> {
                    int sequences = 1 + random.nextInt(4);
                    EngineConfig config =
                            EngineHarness.config(
                                    12 + random.nextInt(20),
                                    sequences,
                                    sequences + random.nextInt(20),
                                    random.nextBoolean());
                    try (EngineHarness engine = engine(config)) {
                        int prompt = config.maxModelLength() / 2;
                        RecordingListener first = engine.submit("f", prompt(0, 3), 5);
                        RecordingListener whole =
                                engine.submit(
                                        "long",
                                        prompt(1, prompt),
                                        config.maxModelLength() - prompt);
                        int steps = 0;
                        while (!whole.isOver()) {
                            engine.submit("s" + steps, prompt(steps, 1 + random.nextInt(8)), 4);
                            engine.step();
                            // It needs a step for each token at most, once who came before is done.
                            assertThat(++steps).isLessThan(2 * config.maxModelLength() + 20);
                        }
                        assertThat(first.isOver()).isTrue();
                        assertThat(whole.finished().reason()).isEqualTo(FinishReason.LENGTH);
                    }
                });
    }

    @Test
    void anAbortInTheMiddleOfAPromptGivesItsBlocksBackAtOnce() {
        try (EngineHarness engine = engine(EngineHarness.config(64, 4, 8, false))) {
            RecordingListener listener = engine.submit("r", prompt(1, 40), 5);
            engine.step();
            engine.step();
            assertThat(engine.freeBlocks()).isLessThan(engine.kvBlocks());
            engine.engine.abort("r");
            engine.step();
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(listener.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(engine.model().chunkSizes()).containsExactly(8, 8);
        }
    }

    @Test
    void anAbortOfWhoLostItsBlocksLeavesThoseOfTheOthersAlone() {
        try (EngineHarness engine = engine(EngineHarness.config(9, 4, 16, false))) {
            List<RecordingListener> listeners = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                listeners.add(engine.submit("r" + i, prompt(i, 6), 20));
            }
            engine.stepUntil(
                    "one has lost its blocks",
                    () ->
                            engine.engine.statistics().preemptions() == 1
                                    && engine.engine.statistics().waiting() == 1);
            int free = engine.freeBlocks();
            List<Integer> tokens = listeners.getLast().tokens();
            engine.engine.abort("r2");
            engine.stepUntil("its end", listeners.getLast()::isOver);
            assertThat(listeners.getLast().reason()).isEqualTo(FinishReason.ABORT);
            assertThat(listeners.getLast().tokens()).isEqualTo(tokens);
            assertThat(engine.freeBlocks()).isLessThanOrEqualTo(free);
            engine.settle();
            for (int i = 0; i < 2; i++) {
                assertThat(listeners.get(i).tokens()).isEqualTo(HashModel.oracle(prompt(i, 6), 20));
            }
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }
}
