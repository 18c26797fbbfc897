package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What every call does in every state. */
final class TransitionTableTest {
    private static final List<String> CALLS =
            List.of(
                    "sleep 0 ABORT",
                    "sleep 0 KEEP",
                    "sleep 1 ABORT",
                    "sleep 1 WAIT",
                    "sleep 1 KEEP",
                    "sleep 2 WAIT",
                    "sleep 2 KEEP",
                    "release",
                    "wake all",
                    "wake WEIGHTS",
                    "wake KV_CACHE",
                    "wake SCHEDULING",
                    "pause ABORT clear",
                    "pause WAIT clear",
                    "pause KEEP",
                    "resume",
                    "reset",
                    "wind down");

    /** The calls that lead from awake to the states of the table, in the order of its columns. */
    private static final List<List<String>> STATES =
            List.of(
                    List.of(),
                    List.of("pause KEEP"),
                    List.of("pause ABORT clear"),
                    List.of("sleep 0 ABORT"),
                    List.of("sleep 1 ABORT"),
                    List.of("sleep 2 ABORT"),
                    List.of("pause ABORT clear", "release"),
                    List.of("sleep 1 ABORT", "wake KV_CACHE"),
                    List.of("sleep 2 ABORT", "wake KV_CACHE"));

    private static EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), new FakeConnector(1)).opened();
    }

    /**
     * Columns: awake, paused (keep), paused (abort), asleep at level 0, 1 and 2, KV cache away,
     * weights away at level 1 and 2. Entries: the new state, {@code -} for no change, {@code C} for
     * a conflict.
     */
    @ParameterizedTest
    @CsvSource({
        "sleep 0 ABORT,     0,     0,     0,     -,  -,     -,     -,     -,  -",
        "sleep 0 WAIT,      0,     0,     0,     -,  -,     -,     -,     -,  -",
        "sleep 0 KEEP,      0,     0,     0,     -,  -,     -,     -,     -,  -",
        "sleep 1 ABORT,     1,     1,     1,     1,  -,     -,     1,     1,  2",
        "sleep 1 WAIT,      1,     1,     1,     1,  -,     -,     1,     1,  2",
        "sleep 1 KEEP,      1,     1,     1,     1,  -,     -,     1,     1,  2",
        "sleep 2 ABORT,     2,     2,     2,     2,  2,     -,     2,     2,  2",
        "sleep 2 WAIT,      2,     2,     2,     2,  2,     -,     2,     2,  2",
        "sleep 2 KEEP,      2,     2,     2,     2,  2,     -,     2,     2,  2",
        "release,           C,     kv,    kv,    kv, -,     -,     -,     1,  2",
        "wake all,          -,     awake, awake, awake, awake, awake, awake, awake, awake",
        "wake WEIGHTS,      -,     -,     -,     -,  kv,    kv,    -,     awake, awake",
        "wake KV_CACHE,     -,     -,     -,     -,  w1,    w2,    awake, -,  -",
        "wake SCHEDULING,   -,     awake, awake, awake, -,  -,     -,     -,  -",
        "pause ABORT clear, paused, paused, -,   -,  -,     -,     -,     -,  -",
        "pause WAIT clear,  paused, paused, -,   -,  -,     -,     -,     -,  -",
        "pause KEEP,        paused, -,   paused, -,  -,     -,     -,     -,  -",
        "resume,            -,     awake, awake, awake, C,  C,     C,     C,  C",
        "reset,             -,     -,     -,     -,  -,     -,     -,     -,  -",
        "wind down,         paused, paused, paused, -, -,    -,     -,     -,  -"
    })
    void everyCallDoesInEveryStateWhatTheTableSays(
            String call,
            String awake,
            String pausedKeep,
            String pausedAbort,
            String level0,
            String level1,
            String level2,
            String kvAway,
            String weightsAway1,
            String weightsAway2) {
        List<String> expected =
                List.of(
                        awake,
                        pausedKeep,
                        pausedAbort,
                        level0,
                        level1,
                        level2,
                        kvAway,
                        weightsAway1,
                        weightsAway2);
        for (int i = 0; i < STATES.size(); i++) {
            try (EngineHarness engine = engine()) {
                STATES.get(i).forEach(step -> engine.made(call(engine, step)));
                EngineState before = engine.engine.state();
                CompletableFuture<TransitionReport> outcome = call(engine, call);
                engine.stepUntil("the call's end", outcome::isDone);
                String what = "%s after %s".formatted(call, STATES.get(i));
                assertThat(describe(outcome)).as(what).isEqualTo(expected.get(i));
                if (!expected.get(i).matches("[a-z0-9]+")) {
                    assertThat(engine.engine.state()).as(what).isEqualTo(before);
                }
                serveAgain(engine, what);
            }
        }
    }

    @Test
    void anyTwoTransitionsInARowLeaveAnEngineThatServesAgain() {
        try (EngineHarness engine = engine()) {
            for (String first : CALLS) {
                for (String second : CALLS) {
                    String what = first + ", then " + second;
                    RecordingListener running = engine.submit("running", prompt(1, 9), 12);
                    engine.step();
                    engine.step();
                    CompletableFuture<TransitionReport> one = call(engine, first);
                    CompletableFuture<TransitionReport> two = call(engine, second);
                    engine.stepUntil("both end", () -> one.isDone() && two.isDone());
                    serveAgain(engine, what);
                    engine.settle();
                    assertThat(running.isOver()).as(what).isTrue();
                    if (running.reason() != FinishReason.ABORT) {
                        assertThat(running.tokens()).isEqualTo(HashModel.oracle(prompt(1, 9), 12));
                    }
                }
            }
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    private static void serveAgain(EngineHarness engine, String what) {
        engine.made(engine.engine.wake(null));
        assertThat(engine.engine.state().phase()).as(what).isEqualTo(Phase.AWAKE);
        List<Integer> prompt = prompt(2, 4 * BLOCK_TOKENS + 1);
        assertThat(engine.generate("after " + what, prompt, 4))
                .as(what)
                .isEqualTo(HashModel.oracle(prompt, 4));
    }

    private static String describe(CompletableFuture<TransitionReport> outcome) {
        try {
            TransitionReport report = outcome.join();
            return report.changed() ? describe(report.state()) : "-";
        } catch (CompletionException e) {
            if (e.getCause() instanceof TransitionRefusedException refusal
                    && refusal.reason() == Reason.CONFLICT) {
                return "C";
            }
            throw e;
        }
    }

    private static String describe(EngineState state) {
        Set<WakeTag> asleep = state.asleep();
        if (state.phase() != Phase.ASLEEP) {
            return state.phase().name().toLowerCase(java.util.Locale.ROOT);
        } else if (asleep.equals(Set.of(WakeTag.KV_CACHE))) {
            return "kv";
        } else if (asleep.equals(Set.of(WakeTag.WEIGHTS))) {
            return "w" + state.sleepLevel();
        }
        return Integer.toString(state.sleepLevel());
    }

    private static CompletableFuture<TransitionReport> call(EngineHarness engine, String call) {
        String[] words = call.split(" ", -1);
        return switch (words[0]) {
            case "sleep" ->
                    engine.engine.sleep(Integer.parseInt(words[1]), PauseMode.valueOf(words[2]));
            case "release" -> engine.engine.releaseKvCacheMemory();
            case "wake" ->
                    engine.engine.wake(
                            words[1].equals("all") ? null : Set.of(WakeTag.valueOf(words[1])));
            case "pause" -> engine.engine.pause(PauseMode.valueOf(words[1]), words.length > 2);
            case "resume" -> engine.engine.resume();
            case "reset" -> engine.engine.resetPrefixCache();
            case "wind" -> engine.engine.windDown();
            default -> throw new AssertionError(call);
        };
    }
}
