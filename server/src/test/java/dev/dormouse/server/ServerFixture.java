package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Natives;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** A server over a scripted engine, with the default model's real tokenizer. */
abstract class ServerFixture {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MAX_REQUESTS = 100;

    /** On a free port of this machine's own address. */
    static final AdminConfig ADMIN = new AdminConfig("127.0.0.1", 0, null, false);

    /** Parameters of a request whose prompt a prefill engine holds. */
    static final String READ =
            """
            {"do_remote_prefill":true,"remote_engine_id":"p","remote_request_id":"r",\
            "remote_host":"127.0.0.1","remote_port":5600,"remote_block_ids":[[1,2]]}""";

    static ModelText text;

    private final HttpClient client = HttpClient.newHttpClient();
    final FakeEngine engine = new FakeEngine();
    EngineServer server;

    /** Of the servers that are started from then on. */
    boolean takesPriorities;

    @BeforeAll
    static void readTokenizer() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            Tokenizer tokenizer = Tokenizer.of(file.metadata());
            text = new ModelText(tokenizer, ChatTemplate.of(file.metadata(), tokenizer));
        }
    }

    @BeforeEach
    void start() {
        server = serve(MAX_REQUESTS, ServedLegs.BOTH);
        engine.script = request -> script(request, "Hello", " world");
    }

    EngineServer serve(int maxRequestsInFlight, ServedLegs legs, String... apiKeys) {
        return serve(text, maxRequestsInFlight, legs, apiKeys);
    }

    EngineServer serve(
            ModelText words, int maxRequestsInFlight, ServedLegs legs, String... apiKeys) {
        return EngineServer.start(
                new ServerConfig(
                        "127.0.0.1",
                        0,
                        10_000,
                        maxRequestsInFlight,
                        legs,
                        takesPriorities,
                        ADMIN,
                        List.of(apiKeys),
                        "1.2.3"),
                engine,
                words,
                () -> Instant.ofEpochSecond(1_700_000_000),
                System::nanoTime);
    }

    @AfterEach
    void stop() {
        server.close();
    }

    static List<GenerationEvent> script(GenerationRequest request, String... pieces) {
        List<GenerationEvent> events = new ArrayList<>();
        if (request.sampling().promptLogprobs() != null) {
            events.add(new GenerationEvent.Prompt(scores(request)));
        }
        for (String piece : pieces) {
            int token = text.tokenizer().encode(piece, false, false)[0];
            boolean logprobs = request.sampling().logprobs() != null;
            events.add(
                    new Tokens(
                            piece,
                            List.of(token),
                            logprobs
                                    ? List.of(
                                            new TokenLogprobs(
                                                    token,
                                                    -0.5f,
                                                    List.of(new Candidate(token, -0.5f))))
                                    : List.of()));
        }
        events.add(
                new Finished(
                        FinishReason.LENGTH,
                        null,
                        new Usage(
                                request.promptTokens().size(),
                                pieces.length,
                                request.promptTokens().size()),
                        null));
        return events;
    }

    /** Token i of the prompt has rank i and log probability −i, behind i − 1 others. */
    private static List<GenerationEvent.PromptToken> scores(GenerationRequest request) {
        int top = Objects.requireNonNull(request.sampling().promptLogprobs());
        List<GenerationEvent.PromptToken> scores = new ArrayList<>();
        for (int i = 1; i < request.promptTokens().size(); i++) {
            List<Candidate> likely = new ArrayList<>();
            for (int rank = 1; rank <= top; rank++) {
                int token = rank == i ? request.promptTokens().get(i) : 40_000 + rank;
                likely.add(new Candidate(token, -rank));
            }
            scores.add(
                    new GenerationEvent.PromptToken(
                            new TokenLogprobs(request.promptTokens().get(i), -i, likely), i));
        }
        return scores;
    }

    HttpResponse<String> send(String method, String path, String body, String... headers) {
        return sendTo(server.port(), method, path, body, headers);
    }

    HttpResponse<String> sendTo(
            int port, String method, String path, String body, String... headers) {
        HttpRequest.Builder builder =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            builder.headers(headers);
        }
        try {
            return client.send(builder.build(), HttpResponse.BodyHandlers.ofString());
        } catch (java.io.IOException | InterruptedException e) {
            throw new AssertionError(method + " " + path + " was not answered", e);
        }
    }

    JsonNode post(int status, String path, String body) {
        HttpResponse<String> response = send("POST", path, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return json(response.body());
    }

    /** Posts to the admin listener. */
    JsonNode control(int status, String path, String body) {
        HttpResponse<String> response = sendTo(server.adminPort(), "POST", path, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return json(response.body());
    }

    static JsonNode json(String text) {
        try {
            return JSON.readTree(text);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new AssertionError("not JSON: " + text, e);
        }
    }

    static List<String> events(HttpResponse<String> response) {
        return Stream.of(response.body().split("\n\n"))
                .map(event -> event.substring("data: ".length()))
                .toList();
    }
}
