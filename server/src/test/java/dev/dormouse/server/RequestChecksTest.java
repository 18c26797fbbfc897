package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the completion endpoints refuse, and how they say so. */
class RequestChecksTest extends ServerFixture {
    private static final String CHAT = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]";

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt\":\"x\"|body|not valid JSON at line 1, column 14: Unexpected end-of-input: expected close marker for Object (start marker at line: 1, column: 1)",
                "{\"prompt\":\"x\"} {}|body|not valid JSON at line 1",
                "[]|body|must be a JSON object",
                "{}|prompt|prompt is missing",
                "{\"prompt\":[]}|prompt|empty list",
                "{\"prompt\":\"\"}|prompt|at least one token",
                "{\"prompt\":\"a\\ud800b\"}|prompt|surrogate pair",
                "{\"prompt\":[\"a\",\"\\udc00\\ud800\"]}|prompt|surrogate pair",
                "{\"prompt\":\"a\",\"stop\":[\"\\ud800\"]}|stop|surrogate pair",
                "{\"prompt\":[99999999]}|prompt|99999999",
                "{\"prompt\":\"x\",\"max_tokens\":0}|max_tokens|at least 1",
                "{\"prompt\":\"x\",\"temperature\":-1}|temperature|temperature is -1.0",
                "{\"prompt\":\"x\",\"temperature\":\"hot\"}|temperature|must be a number",
                "{\"prompt\":\"x\",\"top_p\":0}|top_p|top_p is 0.0",
                "{\"prompt\":\"x\",\"stop\":[\"\"]}|stop|not empty",
                "{\"prompt\":\"x\",\"stop_token_ids\":[-1]}|stop_token_ids|vocabulary",
                "{\"prompt\":\"x\",\"min_tokens\":20}|min_tokens|max_tokens",
                "{\"prompt\":\"x\",\"n\":0}|n|n is 0",
                "{\"prompt\":\"x\",\"n\":1.5}|n|must be an integer",
                "{\"prompt\":\"x\",\"n\":2,\"best_of\":3}|best_of|must equal n",
                "{\"prompt\":\"x\",\"best_of\":2}|best_of|must equal n",
                "{\"prompt\":\"x\",\"priority\":-3}|priority|Priority scheduling is not enabled",
                "{\"prompt\":\"x\",\"priority\":1.5}|priority|must be an integer",
                "{\"prompt\":\"x\",\"echo\":1}|echo|true or false",
                "{\"prompt\":\"x\",\"logprobs\":-1}|logprobs|between 0 and 20",
                "{\"prompt\":\"x\",\"logprobs\":true}|logprobs|must be an integer",
                "{\"prompt\":\"x\",\"prompt_logprobs\":21}|prompt_logprobs|between 0 and 20",
                "{\"prompt\":\"x\",\"prompt_logprobs\":0,\"stream\":true}|prompt_logprobs|stream",
                "{\"prompt\":\"x\",\"stream_options\":{\"include_usage\":true}}|stream_options|stream",
                "{\"prompt\":\"x\",\"stream\":true,\"stream_options\":{\"include_usage\":1}}|stream_options.include_usage|true or false",
                "{\"prompt\":\"x\",\"allowed_token_ids\":[]}|allowed_token_ids|empty",
                "{\"prompt\":\"x\",\"allowed_token_ids\":[49152]}|allowed_token_ids|vocabulary ends at 49151",
                "{\"prompt\":\"x\",\"logit_bias\":{\"a\":1}}|logit_bias|key a",
                "{\"prompt\":\"x\",\"logit_bias\":{\"-1\":1}}|logit_bias|vocabulary",
                "{\"prompt\":\"x\",\"logit_bias\":{\"1\":\"2\"}}|logit_bias|numbers",
                "{\"prompt\":\"x\",\"logit_bias\":[1]}|logit_bias|an object",
                "{\"prompt\":\"x\",\"bad_words\":[\" \"]}|bad_words|blank",
                "{\"prompt\":\"x\",\"truncate_prompt_tokens\":0}|truncate_prompt_tokens|between 1 and 999",
                "{\"prompt\":\"x\",\"truncate_prompt_tokens\":1000}|truncate_prompt_tokens|between 1 and 999",
                "{\"prompt\":\"x\",\"truncation_side\":\"up\"}|truncation_side|left or right",
                "{\"prompt\":\"x\",\"temperature\":1e999}|temperature|between 0 and 100",
                "{\"prompt\":\"x\",\"logprobs\":21}|logprobs|between 0 and 20",
                "{\"prompt\":\"x\",\"n\":2,\"kv_transfer_params\":{}}|kv_transfer_params|one sequence",
                "{\"prompt\":\"x\",\"kv_transfer_params\":[]}|kv_transfer_params|object",
                "{\"prompt\":\"x\",\"kv_transfer_params\":{\"do_remote_prefill\":true}}|kv_transfer_params|remote_engine_id"
            })
    void refusesBadRequestsNamingFieldValueAndLimit(String body, String field, String message) {
        JsonNode error = post(400, "/v1/completions", body).path("error");
        assertThat(error.path("type").asText()).isEqualTo("invalid_request_error");
        assertThat(error.path("message").asText()).contains(message);
        assertThat(error.path("param"))
                .isEqualTo(json(field.equals("body") ? "null" : "\"" + field + "\""));
        assertThat(engine.requests).isEmpty();
    }

    @Test
    void anotherModelsNameIsNotFound() {
        assertThat(
                        post(404, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"gpt\"}")
                                .path("error")
                                .path("code")
                                .asText())
                .isEqualTo("model_not_found");
        post(200, "/v1/completions", "{\"prompt\":\"x\",\"model\":\"fake-model\"}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "guided_choice|[\"a\",\"b\"]",
                "guided_grammar|\"root\"",
                "guided_json|{\"type\":\"object\"}",
                "guided_regex|\".*\"",
                "logits_processors|[\"p\"]",
                "prompt_embeds|\"AAAA\"",
                "response_format|{\"type\":\"json_object\"}",
                "structural_tag|\"{}\"",
                "structured_outputs|{\"choice\":[\"a\"]}",
                "suffix|\"end\"",
                "thinking_token_budget|5",
                "cache_salt|\"s\"",
                "logprob_token_ids|[1]",
                "repetition_detection|{\"a\":1}",
                "response_format|{\"type\":\"json_schema\",\"json_schema\":{}}",
                "vllm_xargs|{\"a\":1}",
                "watermarking|true",
                "use_beam_search|true"
            })
    void aConstraintThatIsNotUnderstoodIsRefusedByBothEndpoints(String field, String value) {
        String more = ",\"" + field + "\":" + value + "}";
        for (JsonNode answer :
                List.of(
                        post(400, "/v1/completions", "{\"prompt\":\"x\"" + more),
                        post(400, "/v1/chat/completions", CHAT + more))) {
            assertThat(answer.path("error").path("param").asText()).isEqualTo(field);
        }
        assertThat(engine.requests).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "chat_template|\"{{ messages }}\"",
                "documents|[{\"text\":\"d\"}]",
                "messages|[{\"role\":\"user\",\"content\":\"\\ud83d\"}]",
                "messages|[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\\ude00\"}]}]",
                "chat_template_kwargs|[1]",
                "chat_template_kwargs|{\"chat_template\":\"x\"}",
                "continue_final_message|true",
                "modalities|[\"audio\"]",
                "functions|[{\"name\":\"f\"}]",
                "tools|[{\"type\":\"function\"}]",
                "tools|[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
                "tools|{}",
                "tool_choice|\"required\"",
                "tool_choice|{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
                "top_logprobs|21",
                "top_logprobs|-1"
            })
    void chatRefusesWhatItCannotDo(String field, String value) {
        JsonNode answer =
                post(
                        400,
                        "/v1/chat/completions",
                        CHAT + ",\"logprobs\":true,\"" + field + "\":" + value + "}");
        assertThat(answer.path("error").path("param").asText()).isEqualTo(field);
        assertThat(engine.requests).isEmpty();
    }

    @Test
    void aConstraintThatConstrainsNothingIsAccepted() {
        post(
                200,
                "/v1/completions",
                "{\"prompt\":\"x\",\"use_beam_search\":false,\"bad_words\":[],\"logit_bias\":{},\"suffix\":null,\"guided_regex\":\"\"}");
        post(200, "/v1/chat/completions", CHAT + ",\"tools\":[],\"tool_choice\":\"none\"}");
    }

    @Test
    void aPromptBeyondTheModelsLengthIsRefusedBeforeItIsCopied() {
        String tokens = "[" + "1,".repeat(999) + "1]";
        for (JsonNode error :
                List.of(
                        post(400, "/v1/completions", "{\"prompt\":" + tokens + "}"),
                        post(400, "/v1/completions", "{\"prompt\":[[1]," + tokens + "]}"),
                        post(
                                400,
                                "/v1/completions",
                                "{\"prompt\":\"" + "x y ".repeat(1000) + "\"}"))) {
            assertThat(error.path("error").path("param").asText()).isEqualTo("prompt");
            assertThat(error.path("error").path("message").asText())
                    .contains("the model's length is 1000 tokens");
        }
        assertThat(engine.requests).isEmpty();
        post(200, "/v1/completions", "{\"prompt\":[" + "1,".repeat(998) + "1]}");
    }

    @Test
    void tooManyPromptsAreRefusedBeforeAnyIsRead() {
        String wrongPrompt = "[[-1]" + ",[1]".repeat(128) + "]";
        JsonNode error =
                post(400, "/v1/completions", "{\"prompt\":" + wrongPrompt + "}").path("error");
        assertThat(error.path("param").asText()).isEqualTo("n");
        assertThat(error.path("message").asText()).contains("129 prompts").contains("1 to 128");
    }

    @Test
    void theChoicesOfAPromptShareItsTokens() {
        post(200, "/v1/completions", "{\"prompt\":[5,6,7],\"n\":3}");
        assertThat(engine.requests)
                .hasSize(3)
                .allSatisfy(
                        request ->
                                assertThat(request.promptTokens())
                                        .isSameAs(engine.requests.getFirst().promptTokens()));
    }

    @ParameterizedTest
    @CsvSource({"PREFILL, 400, 200", "DECODE, 200, 400", "BOTH, 200, 200"})
    void anEngineRefusesTheOtherRolesRequests(ServedLegs legs, int readStatus, int holdStatus) {
        String hold = "{\"do_remote_decode\":true,\"do_remote_prefill\":false}";
        try (EngineServer one = serve(1, legs)) {
            EngineServer other = server;
            server = one;
            try {
                String start = "{\"prompt\":\"x\",\"kv_transfer_params\":";
                JsonNode read = post(readStatus, "/v1/completions", start + READ + "}");
                JsonNode held = post(holdStatus, "/v1/completions", start + hold + "}");
                for (JsonNode answer : List.of(read, held)) {
                    if (answer.has("error")) {
                        assertThat(answer.path("error").path("param").asText())
                                .isEqualTo("kv_transfer_params");
                        assertThat(answer.path("error").path("message").asText()).contains("role");
                    }
                }
                post(200, "/v1/completions", "{\"prompt\":\"x\"}");
            } finally {
                server = other;
            }
        }
    }
}
