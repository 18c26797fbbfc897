package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * Prefill engine, decode engine and router as processes, with the real model over the real NIXL.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class EndToEndTest {
    private static final String PROMPT = DemoPrompts.first(1).getFirst();
    private static final Duration LIMIT = Duration.ofMinutes(2);

    @TempDir private Path logs;
    private final List<ChildProcess> processes = new ArrayList<>();
    private int starts;
    private ChildProcess prefillProcess;
    private Endpoint prefill;
    private Endpoint decode;
    private Endpoint router;

    @BeforeAll
    void start() {
        Natives.nixlDirectory();
        Natives.model();
        prefillProcess = serve("prefill", "--port", "0", "--side-channel-port", "0");
        ChildProcess decodeProcess =
                serve(
                        "decode",
                        "--port",
                        "0",
                        "--side-channel-port",
                        "0",
                        "--no-enable-prefix-caching");
        prefill = new Endpoint("prefill", prefillProcess.awaitReady());
        decode = new Endpoint("decode", decodeProcess.awaitReady());
        ChildProcess routerProcess =
                launch(
                        List.of(
                                "route",
                                "--port",
                                "0",
                                "--prefill",
                                prefill.base().toString(),
                                "--decode",
                                decode.base().toString()));
        router = new Endpoint("router", routerProcess.awaitReady());
    }

    @AfterAll
    void stop() {
        processes.reversed().forEach(ChildProcess::close);
    }

    private ChildProcess serve(String role, String... more) {
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "serve",
                                "--role",
                                role,
                                "--kv-cache-memory",
                                "64MiB",
                                "--max-model-len",
                                "1024"));
        arguments.addAll(List.of("--enable-sleep-mode", "--kv-lease-duration", "10"));
        arguments.addAll(List.of(more));
        return launch(arguments);
    }

    private ChildProcess launch(List<String> arguments) {
        ChildProcess process = ChildProcess.start(arguments.getFirst() + starts++, logs, arguments);
        processes.add(process);
        return process;
    }

    @Test
    void theRouterGivesTheTokensOfAnEngineAloneAndTheDecodeEngineComputesNoPrompt() {
        Counters before = Counters.of(decode);
        List<Integer> routed = router.complete(PROMPT, 12).tokens();
        Counters after = Counters.of(decode).minus(before);
        assertThat(after.reads()).isEqualTo(1);
        assertThat(after.computedPromptTokens()).isZero();
        assertThat(after.failedTransfers()).isZero();
        // Asked without transfer parameters the decode engine computes the prompt itself.
        assertThat(routed).hasSize(12).isEqualTo(decode.complete(PROMPT, 12).tokens());
    }

    @Test
    void theOfficialClientTalksToTheRouterStreamedAndNot() {
        OpenAIClient client =
                OpenAIOkHttpClient.builder()
                        .baseUrl(router.base().resolve("/v1").toString())
                        .apiKey("none")
                        .build();
        ChatCompletionCreateParams params =
                ChatCompletionCreateParams.builder()
                        .model(
                                Json.parse(router.get("/v1/models"))
                                        .path("data")
                                        .path(0)
                                        .path("id")
                                        .asText())
                        .addSystemMessage("You are a helpful assistant.")
                        .addUserMessage("Name three colours of the rainbow.")
                        .maxCompletionTokens(16)
                        .temperature(0)
                        .build();
        ChatCompletion whole = client.chat().completions().create(params);
        String text = whole.choices().getFirst().message().content().orElseThrow();
        StringBuilder streamed = new StringBuilder();
        try (StreamResponse<ChatCompletionChunk> chunks =
                client.chat().completions().createStreaming(params)) {
            chunks.stream()
                    .flatMap(chunk -> chunk.choices().stream())
                    .forEach(choice -> streamed.append(choice.delta().content().orElse("")));
        }
        assertThat(text).isNotBlank();
        assertThat(streamed).hasToString(text);
        assertThat(whole.usage().orElseThrow().completionTokens()).isLessThanOrEqualTo(16);
        client.close();
    }

    @Test
    void aKilledPrefillEngineIsAnErrorForItsClientAndARestartedOneServesAgain() {
        int port = prefill.base().getPort();
        String longPrompt = String.join("\n\n", DemoPrompts.first(3));
        CompletableFuture<Endpoint.Completion> request =
                CompletableFuture.supplyAsync(() -> router.complete(longPrompt, 8));
        Await.until(
                "the prefill engine computing",
                LIMIT,
                () ->
                        prefill.get("/metrics").contains("vllm:num_requests_running{")
                                && running() > 0,
                () -> prefill.get("/metrics"));
        prefillProcess.kill();
        assertThatThrownBy(request::join)
                .isInstanceOf(CompletionException.class)
                .hasCauseInstanceOf(DemoFailure.class);
        assertThat(decode.complete(PROMPT, 4).tokens()).hasSize(4);

        prefillProcess =
                serve("prefill", "--port", Integer.toString(port), "--side-channel-port", "0");
        prefillProcess.awaitReady();
        Await.until(
                "the router sees the engine again",
                LIMIT,
                () -> router.status(PROMPT) == 200,
                () -> router.get("/metrics"));
        Counters before = Counters.of(decode);
        assertThat(router.complete(PROMPT, 12).tokens())
                .isEqualTo(decode.complete(PROMPT, 12).tokens());
        assertThat(Counters.of(decode).minus(before).reads()).isEqualTo(1);
    }

    private double running() {
        return prefill.get("/metrics")
                .lines()
                .filter(line -> line.startsWith("vllm:num_requests_running{"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .sum();
    }

    @Test
    void aSecondEngineOnOneSideChannelPortExitsAndNamesPortAndSetting() throws Exception {
        try (ServerSocket taken =
                new ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress())) {
            String port = Integer.toString(taken.getLocalPort());
            ChildProcess second = serve("prefill", "--port", "0", "--side-channel-port", port);
            assertThatThrownBy(second::awaitReady)
                    .isInstanceOf(DemoFailure.class)
                    .hasMessageContaining(port)
                    .hasMessageContaining("--side-channel-port");
        }
    }
}
