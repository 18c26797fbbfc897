package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the completion endpoints refuse, and how they say so. */
class RequestChecksTest extends ServerFixture {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt\":\"x\"|body|not valid JSON",
                "[]|body|must be a JSON object",
                "{}|prompt|prompt is missing",
                "{\"prompt\":[]}|prompt|empty list",
                "{\"prompt\":\"\"}|prompt|at least one token",
                "{\"prompt\":[99999999]}|prompt|99999999",
                "{\"prompt\":\"x\",\"max_tokens\":0}|max_tokens|at least 1",
                "{\"prompt\":\"x\",\"temperature\":-1}|temperature|temperature is -1.0",
                "{\"prompt\":\"x\",\"temperature\":\"hot\"}|temperature|must be a number",
                "{\"prompt\":\"x\",\"top_p\":0}|top_p|top_p is 0.0",
                "{\"prompt\":\"x\",\"stop\":[\"\"]}|stop|not empty",
                "{\"prompt\":\"x\",\"stop_token_ids\":[-1]}|stop_token_ids|vocabulary",
                "{\"prompt\":\"x\",\"min_tokens\":20}|min_tokens|max_tokens",
                "{\"prompt\":\"x\",\"n\":0}|n|n is 0",
                "{\"prompt\":\"x\",\"echo\":true}|echo|not supported",
                "{\"prompt\":\"x\",\"logprobs\":21}|logprobs|between 0 and 20",
                "{\"prompt\":\"x\",\"n\":2,\"kv_transfer_params\":{}}|kv_transfer_params|one sequence",
                "{\"prompt\":\"x\",\"kv_transfer_params\":[]}|kv_transfer_params|object"
            })
    void refusesBadRequestsNamingFieldValueAndLimit(String body, String field, String message) {
        JsonNode error = post(400, "/v1/completions", body).path("error");
        assertThat(error.path("type").asText()).isEqualTo("invalid_request_error");
        assertThat(error.path("message").asText()).as(field).contains(message);
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
}
