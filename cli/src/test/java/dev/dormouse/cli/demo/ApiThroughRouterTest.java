package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Natives;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Every field means the same through two engines and a router as to one engine, over the real NIXL;
 * what the model says does not matter here, so it is a tiny one.
 */
class ApiThroughRouterTest {
    private static final String PROMPT =
            "The three primary colours that painters mix all the others from are";
    private static final String QUESTION = "Name three colours of the rainbow.";

    @TempDir private static Path logs;
    private static LiveFleet fleet;
    private static HttpClient http;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        Path model = logs.resolve("tiny");
        TinyModelFolder.write(model);
        fleet = new LiveFleet(logs, "--model", model.toString());
        http = HttpClient.newHttpClient();
    }

    @AfterAll
    static void stop() {
        if (fleet != null) {
            fleet.close();
            http.close();
        }
    }

    /**
     * A request's own fields.
     *
     * @param reads prompts that the decode engine reads; the others it computes
     * @param firstTokens those of which it takes the prefill engine's token, too
     */
    record Fields(String json, int reads, int firstTokens) {
        @Override
        public String toString() {
            return json;
        }
    }

    @SuppressWarnings("UnusedVariable") // by name
    private static final List<Fields> COMPLETIONS =
            List.of(
                    new Fields("\"temperature\":0", 1, 1),
                    new Fields(
                            "\"temperature\":1,\"seed\":5,\"top_k\":40,\"top_p\":0.9,\"min_p\":0.01",
                            1,
                            1),
                    new Fields(
                            "\"temperature\":0,\"presence_penalty\":2,\"frequency_penalty\":1,\"repetition_penalty\":1.3",
                            1,
                            1),
                    new Fields("\"temperature\":0,\"logprobs\":2", 1, 0),
                    new Fields("\"temperature\":0,\"echo\":true", 1, 1),
                    new Fields("\"temperature\":0,\"echo\":true,\"max_tokens\":0", 1, 1),
                    new Fields("\"temperature\":0,\"echo\":true,\"logprobs\":1", 0, 0),
                    new Fields("\"temperature\":1,\"seed\":5,\"n\":3,\"best_of\":3", 0, 0),
                    new Fields("\"temperature\":0,\"stop\":[\",\"]", 1, 1),
                    new Fields(
                            "\"temperature\":0,\"stop\":[\",\"],\"include_stop_str_in_output\":true",
                            1,
                            1),
                    new Fields("\"temperature\":0,\"stop\":\",\",\"min_tokens\":5", 1, 0),
                    new Fields("\"temperature\":0,\"logit_bias\":{\"0\":100}", 1, 0),
                    new Fields(
                            "\"temperature\":0,\"logit_bias\":{\"0\":100},\"ignore_eos\":true,\"skip_special_tokens\":false",
                            1,
                            0),
                    new Fields("\"temperature\":0,\"allowed_token_ids\":[33,34]", 1, 0),
                    new Fields("\"temperature\":0,\"bad_words\":[\"red\",\"blue\"]", 1, 0),
                    new Fields("\"temperature\":0,\"truncate_prompt_tokens\":5", 1, 1),
                    new Fields("\"temperature\":0,\"truncate_prompt_tokens\":-1", 0, 0),
                    new Fields("\"temperature\":0,\"return_token_ids\":true", 1, 1),
                    new Fields(
                            "\"temperature\":0,\"response_format\":{\"type\":\"text\"},\"user\":\"u\"",
                            1,
                            1));

    @ParameterizedTest
    @FieldSource("COMPLETIONS")
    void aCompletionsFieldMeansTheSame(Fields fields) throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":6," + fields.json() + "}");
        body.put("prompt", PROMPT);
        requireSame("/v1/completions", body, fields.reads(), fields.firstTokens());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"temperature\":0,\"max_completion_tokens\":4",
                "\"temperature\":0,\"logprobs\":true,\"top_logprobs\":2",
                "\"temperature\":0,\"tool_choice\":\"none\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
                "\"temperature\":0,\"add_generation_prompt\":false,\"continue_final_message\":true,\"echo\":true"
            })
    void aChatsFieldMeansTheSame(String fields) throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":6," + fields + "}");
        body.putArray("messages").addObject().put("role", "user").put("content", QUESTION);
        requireSame("/v1/chat/completions", body, 1, fields.contains("logprobs") ? 0 : 1);
    }

    private static void requireSame(String path, ObjectNode body, int reads, int firstTokens)
            throws Exception {
        for (boolean stream : new boolean[] {false, true}) {
            body.put("stream", stream);
            if (stream) {
                body.putObject("stream_options").put("include_usage", true);
            }
            List<JsonNode> alone = ask(fleet.decode(), path, body, 200);
            Counters before = Counters.of(fleet.decode());
            long taken = LiveFleet.firstTokens(fleet.decode());
            List<JsonNode> routed = ask(fleet.router(), path, body, 200);
            assertThat(Counters.of(fleet.decode()).minus(before).reads()).isEqualTo(reads);
            assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(firstTokens);
            assertThat(routed).isEqualTo(alone);
        }
    }

    /** An answer, or its events in order of choices, without what differs from time to time. */
    private static List<JsonNode> ask(Endpoint at, String path, JsonNode body, int status)
            throws Exception {
        HttpResponse<String> response =
                http.send(
                        HttpRequest.newBuilder(at.base().resolve(path))
                                .header("Content-Type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        List<JsonNode> answers = new ArrayList<>();
        for (String event : response.body().strip().split("\n\n", -1)) {
            String text = event.startsWith("data: ") ? event.substring(6) : event;
            if (!text.equals("[DONE]")) {
                answers.add(comparable(Json.parse(text)));
            }
        }
        answers.sort(
                Comparator.comparingInt(
                        answer -> answer.path("choices").path(0).path("index").asInt(99)));
        return answers;
    }

    private static JsonNode comparable(JsonNode json) {
        if (json instanceof ObjectNode object) {
            object.remove(List.of("id", "created", "prompt_tokens_details"));
            object.properties().forEach(entry -> entry.setValue(comparable(entry.getValue())));
        } else if (json.isArray()) {
            for (int i = 0; i < json.size(); i++) {
                ((com.fasterxml.jackson.databind.node.ArrayNode) json)
                        .set(i, comparable(json.get(i)));
            }
        }
        // One engine sums in another order than two.
        return json.isDouble() ? DoubleNode.valueOf(Math.rint(json.asDouble() * 1000)) : json;
    }

    @Test
    void promptLogprobsAreThoseOfTheEngineThatAnswers() throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":2,\"prompt_logprobs\":1}");
        body.put("prompt", PROMPT).put("temperature", 0);
        List<JsonNode> alone = ask(fleet.decode(), "/v1/completions", body, 200);
        assertThat(ask(fleet.router(), "/v1/completions", body, 200)).isEqualTo(alone);
        // An engine that is told to read computes instead, and lets the holder go.
        body.set("kv_transfer_params", fleet.prefill().prefill(PROMPT));
        assertThat(ask(fleet.decode(), "/v1/completions", body, 200)).isEqualTo(alone);
    }

    @Test
    void aTokenScoresTheSameAsOutputAndAsPrompt() throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":4,\"logprobs\":0}");
        body.put("prompt", PROMPT).put("temperature", 0).put("return_token_ids", true);
        JsonNode choice = ask(fleet.decode(), "/v1/completions", body, 200).getFirst();
        choice = choice.path("choices").path(0);
        ObjectNode again =
                (ObjectNode) Json.parse("{\"max_tokens\":0,\"echo\":true,\"logprobs\":0}");
        choice.path("prompt_token_ids").forEach(id -> again.withArray("/prompt").add(id));
        choice.path("token_ids").forEach(id -> again.withArray("/prompt").add(id));
        JsonNode scored = ask(fleet.decode(), "/v1/completions", again, 200).getFirst();
        JsonNode asPrompt = scored.path("choices").path(0).path("logprobs").path("token_logprobs");
        JsonNode asOutput = choice.path("logprobs").path("token_logprobs");
        for (int i = 0; i < 4; i++) {
            assertThat(asPrompt.path(asPrompt.size() - 4 + i).asDouble())
                    .isCloseTo(asOutput.path(i).asDouble(), within(3.0)); // thousandths
        }
    }

    @Test
    void aPromptThatIsHeldIsReadOnceForAllItsChoices() throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":6,\"n\":3,\"seed\":9}");
        body.put("prompt", PROMPT);
        List<JsonNode> alone = ask(fleet.decode(), "/v1/completions", body, 200);
        body.set("kv_transfer_params", fleet.prefill().prefill(PROMPT));
        Counters before = Counters.of(fleet.decode());
        assertThat(ask(fleet.decode(), "/v1/completions", body, 200)).isEqualTo(alone);
        assertThat(Counters.of(fleet.decode()).minus(before).reads()).isEqualTo(1);
    }

    @Test
    void ofSeveralChoicesOnlyTheFirstTakesTheTokenThatCameWithThePrompt() throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"max_tokens\":1,\"seed\":9}");
        body.put("prompt", PROMPT);
        ObjectNode prefill = body.deepCopy();
        prefill.putObject("kv_transfer_params").put("do_remote_decode", true);
        JsonNode params =
                fleet.prefill().post("/v1/completions", prefill).path("kv_transfer_params");
        body.put("max_tokens", 6).put("n", 3);
        List<JsonNode> alone = ask(fleet.decode(), "/v1/completions", body, 200);
        body.set("kv_transfer_params", params);
        long taken = LiveFleet.firstTokens(fleet.decode());
        assertThat(ask(fleet.decode(), "/v1/completions", body, 200)).isEqualTo(alone);
        assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"temperature\":-1",
                "\"logprobs\":99",
                "\"n\":2,\"best_of\":3",
                "\"suffix\":\"x\"",
                "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}",
                "\"prompt_logprobs\":-2",
                "\"allowed_token_ids\":[],\"temperature\":0"
            })
    void aRefusalIsTheSame(String fields) throws Exception {
        ObjectNode body = (ObjectNode) Json.parse("{\"prompt\":\"x\"," + fields + "}");
        assertThat(ask(fleet.router(), "/v1/completions", body, 400))
                .isEqualTo(ask(fleet.decode(), "/v1/completions", body, 400));
    }
}
