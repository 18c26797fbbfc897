package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.testkit.Seeded;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;

/** Whatever a body says, it is served or refused, and never the server's fault. */
class RandomBodyTest extends ServerFixture {
    private static final List<String> FIELDS =
            List.of(
                    "add_generation_prompt",
                    "add_special_tokens",
                    "allowed_token_ids",
                    "bad_words",
                    "best_of",
                    "chat_template_kwargs",
                    "continue_final_message",
                    "documents",
                    "echo",
                    "frequency_penalty",
                    "ignore_eos",
                    "include_stop_str_in_output",
                    "kv_transfer_params",
                    "logit_bias",
                    "logprobs",
                    "max_completion_tokens",
                    "max_tokens",
                    "messages",
                    "min_p",
                    "min_tokens",
                    "modalities",
                    "model",
                    "n",
                    "parallel_tool_calls",
                    "presence_penalty",
                    "prompt",
                    "prompt_logprobs",
                    "reasoning_effort",
                    "repetition_penalty",
                    "response_format",
                    "return_token_ids",
                    "return_tokens_as_token_ids",
                    "seed",
                    "skip_special_tokens",
                    "stop",
                    "stop_token_ids",
                    "stream",
                    "stream_options",
                    "suffix",
                    "temperature",
                    "tool_choice",
                    "tools",
                    "top_k",
                    "top_logprobs",
                    "top_p",
                    "truncate_prompt_tokens",
                    "truncation_side");

    private static final List<String> VALUES =
            List.of(
                    "null",
                    "true",
                    "false",
                    "0",
                    "1",
                    "2",
                    "-1",
                    "3.5",
                    "1e999",
                    "-1e-999",
                    "99999999999999999999",
                    "9223372036854775807",
                    "\"\"",
                    "\"x\"",
                    "\"none\"",
                    "[]",
                    "[1]",
                    "[1,2,3]",
                    "[-1]",
                    "[\"x\"]",
                    "[[1],[2]]",
                    "[[]]",
                    "[null]",
                    "{}",
                    "{\"1\":1}",
                    "{\"a\":null}",
                    "{\"type\":\"text\"}",
                    "{\"include_usage\":true}",
                    "[{}]",
                    "[{\"role\":\"user\"}]",
                    "[{\"role\":\"user\",\"content\":\"x\"}]",
                    "[{\"type\":\"function\"}]",
                    "[{\"role\":\"assistant\",\"tool_calls\":[1,{\"function\":{\"arguments\":3}}]}]",
                    "\"\\ud800\"");

    private static ObjectNode body(RandomGenerator random, String required, String value) {
        ObjectNode body = JsonNodeFactory.instance.objectNode();
        for (int i = random.nextInt(4); i > 0; i--) {
            JsonNode any = json(VALUES.get(random.nextInt(VALUES.size())));
            body.set(FIELDS.get(random.nextInt(FIELDS.size())), any);
        }
        if (random.nextInt(8) > 0) {
            body.set(required, json(value));
        }
        return body;
    }

    @Test
    void neverMeetsAnInternalError() {
        Seeded.forAll(
                400,
                random -> {
                    boolean chat = random.nextBoolean();
                    ObjectNode body =
                            chat
                                    ? body(
                                            random,
                                            "messages",
                                            "[{\"role\":\"user\",\"content\":\"x\"}]")
                                    : body(random, "prompt", "\"x\"");
                    String path = chat ? "/v1/chat/completions" : "/v1/completions";
                    HttpResponse<String> response = send("POST", path, body.toString());
                    assertThat(response.statusCode())
                            .as("%s -> %s", body, response.body())
                            .isIn(200, 400, 404);
                    if (response.statusCode() != 200) {
                        JsonNode error = json(response.body()).path("error");
                        assertThat(error.path("message").asText()).isNotEmpty();
                        assertThat(error.has("param")).isTrue();
                    }
                });
    }
}
