package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Prefill engine, decode engine and router as processes, with the real model over the real NIXL.
 * Each test leaves them as it found them.
 */
@ExtendWith(SharedFleet.class)
class EndToEndTest {
    private static final String PROMPT = DemoPrompts.first(1).getFirst();

    /** Longer than the decode engine takes. */
    private static final String LONG_PROMPT = String.join("\n\n", DemoPrompts.first(3));

    /** As long, and in nobody's prefix cache. */
    private static final String OTHER_LONG_PROMPT =
            String.join("\n\n", DemoPrompts.first(6).subList(3, 6));

    private static final int TOKENS = 12;
    private static final String HELD = "dormouse:num_requests_held_for_remote";
    private static final String EXPIRED = "vllm:nixl_num_kv_expired_reqs_total";

    private static LiveFleet fleet;

    /** What an engine alone answers to {@link #PROMPT}. */
    private static List<Integer> alone;

    @BeforeAll
    static void start(LiveFleet shared) {
        fleet = shared;
        // Asked without transfer parameters the decode engine computes the prompt itself.
        alone = fleet.decode().complete(PROMPT, TOKENS).tokens();
        assertThat(alone).hasSize(TOKENS);
    }

    /** One request that must go the whole way: computed by one engine, read by the other. */
    private static void requireServing() {
        Counters before = Counters.of(fleet.decode());
        long taken = LiveFleet.firstTokens(fleet.decode());
        assertThat(fleet.router().complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(1);
        assertThat(spent.reads()).isEqualTo(1);
        assertThat(spent.computedPromptTokens()).isZero();
        assertThat(spent.failedTransfers()).isZero();
    }

    private static void awaitNothingHeld() {
        Await.until(
                "the prefill engine holds nothing",
                LiveFleet.LIMIT,
                () -> LiveFleet.metric(fleet.prefill(), HELD) == 0,
                () -> fleet.prefill().get("/metrics"));
    }

    @Test
    void theRouterGivesTheTokensOfAnEngineAloneAndTheDecodeEngineComputesNoPrompt() {
        requireServing();
        awaitNothingHeld();
    }

    @Test
    void aSeededDrawIsThatOfAnEngineAloneAndBeginsWithThePrefillEnginesToken() {
        for (int seed = 1; seed <= 3; seed++) {
            ObjectNode body = Json.MAPPER.createObjectNode().put("prompt", PROMPT);
            body.put("max_tokens", TOKENS).put("temperature", 1).put("seed", seed);
            body.put("ignore_eos", true).put("return_token_ids", true);
            JsonNode drawnAlone = drawn(fleet.decode(), body);
            long taken = LiveFleet.firstTokens(fleet.decode());
            assertThat(drawnAlone).hasSize(TOKENS);
            assertThat(drawn(fleet.router(), body)).isEqualTo(drawnAlone);
            assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(1);
        }
    }

    private static JsonNode drawn(Endpoint endpoint, ObjectNode body) {
        return endpoint.post("/v1/completions", body).path("choices").path(0).path("token_ids");
    }

    @Test
    void theOfficialClientGetsWhatAnEngineAloneGivesStreamedAndNot() {
        String model =
                Json.parse(fleet.router().get("/v1/models"))
                        .path("data")
                        .path(0)
                        .path("id")
                        .asText();
        ChatCompletionCreateParams params =
                ChatCompletionCreateParams.builder()
                        .model(model)
                        .addSystemMessage("You are a helpful assistant.")
                        .addUserMessage("Name three colours of the rainbow.")
                        .maxCompletionTokens(TOKENS)
                        .temperature(0)
                        .build();
        String expected = text(client(fleet.decode()), params);
        Counters before = Counters.of(fleet.decode());
        OpenAIClient client = client(fleet.router());

        assertThat(text(client, params)).isNotBlank().isEqualTo(expected);
        StringBuilder streamed = new StringBuilder();
        try (StreamResponse<ChatCompletionChunk> chunks =
                client.chat().completions().createStreaming(params)) {
            chunks.stream()
                    .flatMap(chunk -> chunk.choices().stream())
                    .forEach(choice -> streamed.append(choice.delta().content().orElse("")));
        }
        assertThat(streamed).hasToString(expected);
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(spent.reads()).isEqualTo(2);
        assertThat(spent.computedPromptTokens()).isZero();
    }

    private static OpenAIClient client(Endpoint endpoint) {
        return OpenAIOkHttpClient.builder()
                .baseUrl(endpoint.base().resolve("/v1").toString())
                .apiKey("none")
                .maxRetries(0)
                .build();
    }

    private static String text(OpenAIClient client, ChatCompletionCreateParams params) {
        ChatCompletion whole = client.chat().completions().create(params);
        assertThat(whole.usage().orElseThrow().completionTokens()).isBetween(1L, (long) TOKENS);
        return whole.choices().getFirst().message().content().orElseThrow();
    }

    @Test
    void aPrefillEngineKilledAtWorkIsAnErrorForItsClientAndServesAgainOnceRestarted()
            throws Exception {
        requireServing(); // so that the decode engine knows the engine that will be gone
        JsonNode orphan = fleet.prefill().prefill(PROMPT);
        CompletableFuture<Endpoint.Completion> request =
                CompletableFuture.supplyAsync(
                        () -> fleet.router().complete(OTHER_LONG_PROMPT, TOKENS));
        Await.until(
                "the prefill engine computing",
                LiveFleet.LIMIT,
                () -> LiveFleet.metric(fleet.prefill(), "vllm:num_requests_running") > 0,
                () -> fleet.prefill().get("/metrics"));
        fleet.killPrefill();

        assertThatThrownBy(() -> request.get(60, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(FleetException.class)
                .hasMessageContaining("router answered /v1/completions with 503")
                .hasMessageContaining("prefill_unreachable");
        // What was handed over before is gone as well.
        CompletableFuture<Endpoint.Completion> read =
                CompletableFuture.supplyAsync(
                        () -> fleet.decode().complete(PROMPT, TOKENS, orphan));
        assertThatThrownBy(() -> read.get(60, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasMessageContaining("kv_transfer_failed");
        assertThat(fleet.decode().complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);

        fleet.restartPrefill();
        requireServing();
    }

    @Test
    void aDecodeEngineKilledAtWorkEndsItsStreamsAndServesAgainOnceRestarted() throws Exception {
        awaitNothingHeld(); // what was held before would expire among what is counted here
        double expired = LiveFleet.metric(fleet.prefill(), EXPIRED);
        fleet.prefill().prefill(PROMPT); // what it would have read next
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("prompt", PROMPT).put("max_tokens", 300).put("temperature", 0);
        body.put("ignore_eos", true).put("stream", true);
        List<String> rest = new ArrayList<>();
        try (HttpClient http = HttpClient.newHttpClient()) {
            HttpRequest request =
                    HttpRequest.newBuilder(fleet.router().base().resolve("/v1/completions"))
                            .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                            .build();
            Iterator<String> lines =
                    http.send(request, HttpResponse.BodyHandlers.ofLines()).body().iterator();
            assertThat(lines.next()).startsWith("data: {").contains("\"text\":");
            Await.until(
                    "what it has read is let go",
                    LiveFleet.LIMIT,
                    () -> LiveFleet.metric(fleet.prefill(), HELD) == 1,
                    () -> fleet.prefill().get("/metrics"));
            fleet.killDecode();
            CompletableFuture.runAsync(() -> lines.forEachRemaining(rest::add))
                    .get(60, TimeUnit.SECONDS);
        }
        assertThat(rest).doesNotContain("data: [DONE]");
        assertThat(String.join("\n", rest)).contains("\"error\":");
        // The other engine lives, and lets go what nobody will read.
        assertThat(fleet.prefill().complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);
        awaitNothingHeld();
        assertThat(LiveFleet.metric(fleet.prefill(), EXPIRED)).isEqualTo(expired + 1);

        fleet.restartDecode();
        requireServing();
    }

    @Test
    void aSecondEngineOnOneSideChannelPortExitsAndNamesPortAndSetting() {
        int port = fleet.prefillSideChannelPort();
        ChildProcess second = fleet.startPrefill(0, port);

        assertThatThrownBy(second::awaitReady)
                .isInstanceOf(FleetException.class)
                .hasMessageContaining("ended with status 1")
                .hasMessageContaining(Integer.toString(port))
                .hasMessageContaining("--side-channel-port");
        requireServing();
    }

    @Test
    void noiseOnAnyPortHarmsNobody() {
        List<Integer> ports =
                List.of(
                        fleet.prefillSideChannelPort(),
                        fleet.prefill().base().getPort(),
                        fleet.prefillAdmin().base().getPort(),
                        fleet.decode().base().getPort(),
                        fleet.router().base().getPort());
        Seeded.forAll(
                20,
                random -> {
                    for (int port : ports) {
                        sendNoise(port, random);
                    }
                });

        // A wake makes the decode engine ask for the layout again, so the listener has to answer.
        fleet.prefillAdmin().post("/sleep?level=1");
        fleet.prefillAdmin().post("/wake_up");
        long handshakes = Counters.of(fleet.decode()).handshakes();
        requireServing();
        assertThat(Counters.of(fleet.decode()).handshakes()).isEqualTo(handshakes + 1);
    }

    /** Random bytes, some behind the beginning of what the port expects, cut off or reset. */
    private static void sendNoise(int port, RandomGenerator random) {
        byte[] noise = new byte[random.nextInt(1, 4096)];
        random.nextBytes(noise);
        byte[] start =
                switch (random.nextInt(3)) {
                    case 0 -> new byte[0];
                    case 1 -> zmtpGreeting();
                    default ->
                            "POST /v1/completions HTTP/1.1\r\nContent-Length: 99\r\n"
                                    .getBytes(StandardCharsets.US_ASCII);
                };
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            if (random.nextBoolean()) {
                socket.setSoLinger(true, 0); // its close is a reset
            }
            socket.getOutputStream().write(start);
            socket.getOutputStream().write(noise);
        } catch (IOException e) {
            // The server may have hung up in the middle of it.
        }
    }

    /** ZMTP 3.0's first 64 bytes, without authentication. */
    private static byte[] zmtpGreeting() {
        byte[] greeting = new byte[64];
        greeting[0] = (byte) 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3;
        System.arraycopy("NULL".getBytes(StandardCharsets.US_ASCII), 0, greeting, 12, 4);
        return greeting;
    }

    @Test
    void aPromptTooLongForTheDecodeEngineIsLetGoAtOnce() {
        awaitNothingHeld();
        double expired = LiveFleet.metric(fleet.prefill(), EXPIRED);

        assertThatThrownBy(() -> fleet.router().complete(LONG_PROMPT, TOKENS))
                .isInstanceOf(FleetException.class)
                .hasMessageContaining("router answered /v1/completions with 400")
                .hasMessageContaining("the model's length is 512 tokens"); // the decode engine's
        awaitNothingHeld();
        assertThat(LiveFleet.metric(fleet.prefill(), EXPIRED)).isEqualTo(expired);
    }

    @Test
    void theHandOverOfARequestThatIsRefusedForAnotherReasonIsLetGoAtOnce() {
        awaitNothingHeld();
        double expired = LiveFleet.metric(fleet.prefill(), EXPIRED);
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("prompt", PROMPT).put("temperature", -1);
        body.set("kv_transfer_params", fleet.prefill().prefill(PROMPT));

        assertThatThrownBy(() -> fleet.decode().post("/v1/completions", body))
                .isInstanceOf(FleetException.class)
                .hasMessageContaining("temperature");
        awaitNothingHeld();
        assertThat(LiveFleet.metric(fleet.prefill(), EXPIRED)).isEqualTo(expired);
    }
}
