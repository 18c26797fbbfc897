package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Processes that are told to end. */
final class ShutdownTest {
    private static final String PROMPT = "The dormouse sleeps from October to April, because";

    @TempDir Path logs;

    @BeforeAll
    static void requireNatives() {
        Natives.nixlDirectory();
        Natives.model();
    }

    /** An engine that has nothing to compute for long. */
    private ChildProcess serveTiny(String... more) {
        Path model = logs.resolve("tiny");
        if (!Files.exists(model)) {
            TinyModelFolder.write(model);
        }
        List<String> arguments = arguments("--model", model.toString());
        arguments.addAll(List.of(more));
        return TinyProcess.start("engine", logs, arguments);
    }

    private ChildProcess serve(String... more) {
        return ChildProcess.start("engine", logs, arguments(more));
    }

    private static List<String> arguments(String... more) {
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "serve",
                                "--port",
                                "0",
                                "--side-channel-port",
                                "0",
                                "--kv-cache-memory",
                                "64MiB",
                                "--max-model-len",
                                "1024",
                                "--enable-sleep-mode"));
        arguments.addAll(List.of(more));
        return arguments;
    }

    @Test
    void anEngineAnswersWhatItServesAndEndsWithStatusZero() {
        try (ChildProcess process = serve("--shutdown-timeout", "120")) {
            EngineProcess engine = new EngineProcess(process);
            CompletableFuture<List<Integer>> answer =
                    CompletableFuture.supplyAsync(
                            () -> engine.endpoint().complete(PROMPT, 64).tokens());
            Await.until("it computes", LiveFleet.LIMIT, () -> running(engine) == 1, () -> "");

            assertThat(process.end(LiveFleet.LIMIT)).isZero();
            assertThat(answer.join()).hasSize(64);
        }
    }

    @Test
    void aRequestThatDoesNotEndInTimeIsAbortedAndTheStatusIsZero() {
        try (ChildProcess process = serve("--shutdown-timeout", "0")) {
            EngineProcess engine = new EngineProcess(process);
            CompletableFuture<String> answer =
                    CompletableFuture.supplyAsync(() -> engine.endpoint().chat(PROMPT, 900));
            Await.until("it computes", LiveFleet.LIMIT, () -> running(engine) == 1, () -> "");

            assertThat(process.end(LiveFleet.LIMIT)).isZero();
            assertThat(answer.join()).contains("\"finish_reason\":\"abort\"").contains("[DONE]");
        }
    }

    @Test
    void aHeldPromptMayBeReadUntilTheLimitAlsoIfTheHolderIsToldToEnd() {
        try (ChildProcess process = serveTiny("--role", "prefill", "--shutdown-timeout", "60")) {
            EngineProcess prefill = new EngineProcess(process);
            try (ChildProcess reader =
                    serveTiny("--role", "decode", "--no-enable-prefix-caching")) {
                EngineProcess decode = new EngineProcess(reader);
                JsonNode params = prefill.endpoint().prefill(PROMPT);
                CompletableFuture<Integer> status =
                        CompletableFuture.supplyAsync(() -> process.end(LiveFleet.LIMIT));
                Await.until(
                        "it takes no more requests",
                        LiveFleet.LIMIT,
                        () -> prefill.endpoint().status("x") == 503,
                        () -> "");

                assertThat(decode.endpoint().complete(PROMPT, 4, params).tokens()).hasSize(4);
                assertThat(decode.counters().reads()).isEqualTo(1);
                assertThat(status.join()).isZero();
            }
        }
    }

    @Test
    void asleepItEndsWithStatusZero() {
        try (ChildProcess process = serveTiny("--hold-requests-while-asleep")) {
            EngineProcess engine = new EngineProcess(process);
            engine.sleep(2, "wait");
            CompletableFuture<?> waiting =
                    CompletableFuture.supplyAsync(() -> engine.endpoint().complete(PROMPT, 4));
            Await.until(
                    "it waits",
                    LiveFleet.LIMIT,
                    () -> LiveFleet.metric(engine.endpoint(), "vllm:num_requests_waiting") == 1,
                    () -> "");

            assertThat(process.end(LiveFleet.LIMIT)).isZero();
            assertThatThrownBy(waiting::join).hasMessageContaining("503");
        }
    }

    private static double running(EngineProcess engine) {
        return LiveFleet.metric(engine.endpoint(), "vllm:num_requests_running");
    }
}
