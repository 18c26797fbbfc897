package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.completions.Completion;
import com.openai.models.completions.CompletionCreateParams;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.Json;
import dev.langchain4j.exception.InvalidRequestException;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiLanguageModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Other people's clients understand an engine, and two with a router, alike: the default model,
 * over the real NIXL.
 */
@ExtendWith(SharedFleet.class)
class ClientsThroughRouterTest {
    private static final String PROMPT =
            "The three primary colours that painters mix all the others from are";
    private static final String QUESTION = "Name three colours of the rainbow.";

    private static LiveFleet fleet;
    private static String model;

    @BeforeAll
    static void start(LiveFleet shared) {
        fleet = shared;
        model =
                Json.parse(fleet.decode().get("/v1/models"))
                        .path("data")
                        .path(0)
                        .path("id")
                        .asText();
    }

    private static List<Endpoint> servers() {
        return List.of(fleet.decode(), fleet.router());
    }

    private static URI api(Endpoint server) {
        return server.base().resolve("/v1");
    }

    @Test
    void theOfficialJavaClientIsUnderstood() {
        List<String> heard = new ArrayList<>();
        for (Endpoint server : servers()) {
            OpenAIClient client =
                    OpenAIOkHttpClient.builder()
                            .baseUrl(api(server).toString())
                            .apiKey("none")
                            .maxRetries(0)
                            .build();
            assertThat(client.models().retrieve(model).id()).isEqualTo(model);
            CompletionCreateParams text =
                    CompletionCreateParams.builder()
                            .model(model)
                            .prompt(PROMPT)
                            .maxTokens(4)
                            .temperature(0)
                            .logprobs(1)
                            .build();
            Completion completion = client.completions().create(text);
            StringBuilder streamed = new StringBuilder();
            try (StreamResponse<Completion> pieces = client.completions().createStreaming(text)) {
                pieces.stream()
                        .flatMap(piece -> piece.choices().stream())
                        .forEach(choice -> streamed.append(choice.text()));
            }
            assertThat(streamed).hasToString(completion.choices().getFirst().text());
            assertThat(
                            completion
                                    .choices()
                                    .getFirst()
                                    .logprobs()
                                    .orElseThrow()
                                    .tokenLogprobs()
                                    .orElseThrow())
                    .hasSize(4);
            ChatCompletion two =
                    client.chat()
                            .completions()
                            .create(
                                    ChatCompletionCreateParams.builder()
                                            .model(model)
                                            .addUserMessage(QUESTION)
                                            .maxCompletionTokens(4)
                                            .temperature(0)
                                            .n(2)
                                            .build());
            assertThat(two.choices()).hasSize(2);
            assertThatThrownBy(
                            () ->
                                    client.completions()
                                            .create(text.toBuilder().temperature(-1).build()))
                    .isInstanceOf(BadRequestException.class)
                    .hasMessageContaining("temperature");
            heard.add(
                    streamed
                            + two.choices().getFirst().message().content().orElseThrow()
                            + two.choices().getLast().message().content().orElseThrow());
        }
        assertThat(heard.getFirst()).isEqualTo(heard.getLast());
    }

    @Test
    void langChain4jIsUnderstood() throws Exception {
        List<String> heard = new ArrayList<>();
        for (Endpoint server : servers()) {
            OpenAiChatModel chat =
                    OpenAiChatModel.builder()
                            .baseUrl(api(server).toString())
                            .apiKey("none")
                            .modelName(model)
                            .temperature(0.0)
                            .maxCompletionTokens(6)
                            .maxRetries(0)
                            .build();
            String whole = chat.chat(QUESTION);
            assertThat(whole).isNotBlank();
            assertThat(streamed(server)).isEqualTo(whole);
            OpenAiLanguageModel text =
                    OpenAiLanguageModel.builder()
                            .baseUrl(api(server).toString())
                            .apiKey("none")
                            .modelName(model)
                            .temperature(0.0)
                            .maxRetries(0)
                            .build();
            heard.add(whole + text.generate(PROMPT).content());
            OpenAiChatModel wrong =
                    OpenAiChatModel.builder()
                            .baseUrl(api(server).toString())
                            .apiKey("none")
                            .modelName(model)
                            .temperature(-1.0)
                            .maxRetries(0)
                            .build();
            assertThatThrownBy(() -> wrong.chat(QUESTION))
                    .isInstanceOf(InvalidRequestException.class)
                    .hasMessageContaining("temperature");
        }
        assertThat(heard.getFirst()).isEqualTo(heard.getLast());
    }

    private static String streamed(Endpoint server) throws Exception {
        StringBuilder pieces = new StringBuilder();
        CompletableFuture<ChatResponse> end = new CompletableFuture<>();
        OpenAiStreamingChatModel.builder()
                .baseUrl(api(server).toString())
                .apiKey("none")
                .modelName(model)
                .temperature(0.0)
                .maxCompletionTokens(6)
                .build()
                .chat(
                        QUESTION,
                        new StreamingChatResponseHandler() {
                            @Override
                            public void onPartialResponse(String piece) {
                                pieces.append(piece);
                            }

                            @Override
                            public void onCompleteResponse(ChatResponse response) {
                                end.complete(response);
                            }

                            @Override
                            public void onError(Throwable error) {
                                end.completeExceptionally(error);
                            }
                        });
        ChatResponse response = end.get(60, TimeUnit.SECONDS);
        assertThat(response.tokenUsage().outputTokenCount()).isEqualTo(6);
        assertThat(response.aiMessage().text()).isEqualTo(pieces.toString());
        return pieces.toString();
    }

    @Test
    void theOfficialPythonClientIsUnderstood() throws Exception {
        PythonClient.require();
        JsonNode heard = PythonClient.ask(api(fleet.decode()));
        assertThat(PythonClient.ask(api(fleet.router()))).isEqualTo(heard);
        assertThat(heard.path("model").asBoolean()).isTrue();
        assertThat(heard.path("chat_streamed")).isEqualTo(heard.path("chat"));
        assertThat(heard.path("chat_streamed_usage")).isEqualTo(heard.path("chat_usage"));
        assertThat(heard.path("chat_logprobs").toString()).isEqualTo("[2,2,2,2,2,2]");
        assertThat(heard.path("text").asText()).startsWith(PROMPT);
        assertThat(heard.path("choices")).hasSize(2);
        assertThat(heard.path("prompt_logprobs").asBoolean()).isTrue();
        assertThat(heard.path("biased").asText()).hasSize(3).matches("(.)\\1\\1");
        assertThat(heard.path("extra").asText()).hasSize(2);
        assertThat(heard.path("bad_value").toString())
                .isEqualTo("[\"BadRequestError\",\"temperature\",\"invalid_value\"]");
        assertThat(heard.path("bad_model").path(0).asText()).isEqualTo("NotFoundError");
        assertThat(heard.path("bad_format").path(1).asText()).isEqualTo("response_format");
    }
}
