package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Sleep, wake, release, pause and resume over HTTP. Each answers when the transition is over.
 * Thread-safe.
 */
final class ControlHandlers {
    private final Engine engine;
    private final ControlMetrics metrics;

    ControlHandlers(Engine engine, ControlMetrics metrics) {
        this.engine = engine;
        this.metrics = metrics;
    }

    ObjectNode sleep(ControlParameters parameters) throws InterruptedException {
        int level = level(parameters.value("level"));
        TransitionReport report = measure("sleep", engine.sleep(level, mode(parameters)));
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", "sleeping");
        answer.put("level", report.state().sleepLevel());
        return describe(answer, report, "bytes_released");
    }

    ObjectNode wake(ControlParameters parameters) throws InterruptedException {
        @Nullable List<String> names = parameters.values("tags");
        TransitionReport report = measure("wake", engine.wake(names == null ? null : tags(names)));
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", report.state().isSleeping() ? "sleeping" : "awake");
        return describe(answer, report, "bytes_restored");
    }

    ObjectNode releaseKvCache() throws InterruptedException {
        TransitionReport report = measure("release_kv_cache_memory", engine.releaseKvCacheMemory());
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", "kv_cache_released");
        return describe(answer, report, "bytes_released");
    }

    ObjectNode pause(ControlParameters parameters) throws InterruptedException {
        String clear = parameters.value("clear_cache");
        if (clear != null && !clear.equals("true") && !clear.equals("false")) {
            throw ApiException.badRequest(
                    "clear_cache", "clear_cache is `" + clear + "`, but must be true or false");
        }
        TransitionReport report =
                measure("pause", engine.pause(mode(parameters), !"false".equals(clear)));
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", "paused");
        return answer.put("changed", report.changed());
    }

    ObjectNode resume() throws InterruptedException {
        TransitionReport report = await(engine.resume());
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", "resumed");
        return answer.put("changed", report.changed());
    }

    ObjectNode resetPrefixCache() throws InterruptedException {
        TransitionReport report = await(engine.resetPrefixCache());
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", "reset");
        return answer.put("changed", report.changed());
    }

    ObjectNode isSleeping() {
        EngineState state = engine.state();
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("is_sleeping", state.isSleeping());
        answer.put("phase", phase(state));
        answer.put("level", state.sleepLevel());
        putTags(answer.putArray("asleep"), state.asleep());
        return answer;
    }

    ObjectNode isPaused() {
        return Answers.JSON.objectNode().put("is_paused", engine.state().paused());
    }

    static String phase(EngineState state) {
        return state.phase().name().toLowerCase(Locale.ROOT);
    }

    private static ObjectNode describe(
            ObjectNode answer, TransitionReport report, String bytesName) {
        answer.put("changed", report.changed());
        putTags(answer.putArray("tags"), report.tags());
        answer.put(bytesName, report.bytes());
        ObjectNode seconds = answer.putObject("seconds");
        report.phaseSeconds().forEach(seconds::put);
        return answer;
    }

    private static void putTags(ArrayNode array, Set<WakeTag> tags) {
        tags.stream().sorted().map(WakeTag::wireName).forEach(array::add);
    }

    private static int level(@Nullable String text) {
        if (text == null) {
            return 1;
        }
        if (!text.equals("0") && !text.equals("1") && !text.equals("2")) {
            throw ApiException.badRequest(
                    "level", "level is `" + text + "`, but must be 0, 1 or 2");
        }
        return Integer.parseInt(text);
    }

    private static PauseMode mode(ControlParameters parameters) {
        String text = parameters.value("mode");
        if (text == null) {
            return PauseMode.ABORT;
        }
        return switch (text) {
            case "abort" -> PauseMode.ABORT;
            case "wait" -> PauseMode.WAIT;
            case "keep" -> PauseMode.KEEP;
            default ->
                    throw ApiException.badRequest(
                            "mode", "mode is `" + text + "`, but must be abort, wait or keep");
        };
    }

    private static Set<WakeTag> tags(List<String> names) {
        Set<WakeTag> tags = EnumSet.noneOf(WakeTag.class);
        for (String name : names) {
            tags.add(
                    Arrays.stream(WakeTag.values())
                            .filter(tag -> tag.wireName().equals(name))
                            .findFirst()
                            .orElseThrow(
                                    () ->
                                            ApiException.badRequest(
                                                    "tags",
                                                    "tags has `"
                                                            + name
                                                            + "`, but knows weights, kv_cache and scheduling only")));
        }
        return tags;
    }

    private TransitionReport measure(
            String operation, CompletableFuture<TransitionReport> transition)
            throws InterruptedException {
        try (ControlMetrics.Operation running = metrics.begin(operation)) {
            try {
                return await(transition);
            } catch (ApiException e) {
                if (e.status() >= 500) {
                    running.failed();
                }
                throw e;
            } catch (IllegalStateException e) {
                running.failed();
                throw e;
            }
        }
    }

    private static TransitionReport await(CompletableFuture<TransitionReport> transition)
            throws InterruptedException {
        try {
            return transition.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof TransitionRefusedException refusal) {
                throw ApiException.of(refusal);
            }
            throw new IllegalStateException("the transition failed: " + e.getCause(), e);
        }
    }
}
