package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.model.chat.ChatTemplate;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a chat may say to the template, over one that knows tools as the Hermes family does. */
class ToolsTest extends ServerFixture {
    private static final String TEMPLATE =
            """
            {% if tools %}tools={{ tools | tojson }} as <tool_call> {% endif %}\
            {% for m in messages %}[{{ m.role }}{% if m.name %} {{ m.name }}{% endif %}: {{ m.content }}\
            {% for c in m.tool_calls %} call {{ c.function.name }} {{ c.function.arguments.city }}{% endfor %}]\
            {% endfor %}{% if documents %}docs {{ documents[0].text }} {% endif %}\
            {{ style }}{% if reasoning_effort %} {{ reasoning_effort }}{% endif %}\
            {% if add_generation_prompt %}[assistant: {% endif %}""";

    private static final String TOOL =
            "{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\"}}}";

    private EngineServer plain;

    @BeforeEach
    void useTools() {
        plain = server;
        server =
                serve(
                        new ModelText(text.tokenizer(), ChatTemplate.of(TEMPLATE, "<s>", "</s>")),
                        10,
                        ServedLegs.BOTH);
    }

    @AfterEach
    void stopPlain() {
        plain.close();
    }

    private String prompt() {
        return text.tokenizer()
                .decode(
                        engine.requests.getLast().promptTokens().stream()
                                .mapToInt(Integer::intValue)
                                .toArray());
    }

    private static String chat(String messages, String more) {
        return "{\"messages\":[" + messages + "]" + more + "}";
    }

    private static final String USER = "{\"role\":\"user\",\"content\":\"Hi\"}";

    private void say(FinishReason reason, String... pieces) {
        List<GenerationEvent> events = new ArrayList<>();
        for (String piece : pieces) {
            events.add(new Tokens(piece, List.of(1), List.of()));
        }
        events.add(new Finished(reason, null, new Usage(1, pieces.length, 0), null));
        engine.script = request -> events;
    }

    @Test
    void theTemplateIsToldOfToolsAndOfCallsAndOfTheirResults() {
        String messages =
                USER
                        + ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\"}}]}"
                        + ",{\"role\":\"tool\",\"tool_call_id\":\"c\",\"name\":\"weather\",\"content\":\"rain\"}";
        post(200, "/v1/chat/completions", chat(messages, ",\"tools\":[" + TOOL + "]"));
        assertThat(prompt())
                .startsWith("tools=[{\"type\": \"function\", \"function\": {\"name\": \"weather\"")
                .contains("[assistant: None call weather Bern]")
                .contains("[tool weather: rain]");
        post(
                200,
                "/v1/chat/completions",
                chat(USER, ",\"tool_choice\":\"none\",\"tools\":[" + TOOL + "]"));
        assertThat(prompt()).startsWith("tools=");
    }

    @Test
    void callsComeAsCallsWholeAndStreamed() {
        say(
                FinishReason.STOP,
                "Let me see.",
                "<tool_",
                "call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Bern\"}}",
                "</tool_call>");
        String body = chat(USER, ",\"tools\":[" + TOOL + "]");
        JsonNode choice = post(200, "/v1/chat/completions", body).path("choices").path(0);
        assertThat(choice.path("finish_reason").asText()).isEqualTo("tool_calls");
        assertThat(choice.path("message").path("content").asText()).isEqualTo("Let me see.");
        requireCall(choice.path("message").path("tool_calls"));

        List<JsonNode> events =
                events(
                                send(
                                        "POST",
                                        "/v1/chat/completions",
                                        body.substring(0, body.length() - 1) + ",\"stream\":true}"))
                        .stream()
                        .filter(event -> !event.equals("[DONE]"))
                        .map(ServerFixture::json)
                        .toList();
        StringBuilder content = new StringBuilder();
        List<JsonNode> calls = new ArrayList<>();
        for (JsonNode event : events) {
            JsonNode delta = event.path("choices").path(0).path("delta");
            content.append(delta.path("content").asText(""));
            delta.path("tool_calls").forEach(calls::add);
        }
        assertThat(content).hasToString("Let me see.");
        assertThat(calls).hasSize(1);
        assertThat(calls.getFirst().path("index").asInt(-1)).isZero();
        assertThat(calls.getFirst().path("function").path("name").asText()).isEqualTo("weather");
        assertThat(events.getLast().path("choices").path(0).path("finish_reason").asText())
                .isEqualTo("tool_calls");
    }

    private static void requireCall(JsonNode calls) {
        assertThat(calls).hasSize(1);
        JsonNode call = calls.path(0);
        assertThat(call.path("id").asText()).startsWith("chatcmpl-tool-");
        assertThat(call.path("type").asText()).isEqualTo("function");
        assertThat(call.path("function").path("name").asText()).isEqualTo("weather");
        assertThat(call.path("function").path("arguments").asText())
                .isEqualTo("{\"city\":\"Bern\"}");
    }

    @Test
    void anAnswerOfCallsOnlyHasNoContentAndOneCutOffIsCutOff() {
        String call = "\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Bern\"}}";
        say(FinishReason.LENGTH, call);
        JsonNode choice =
                post(200, "/v1/chat/completions", chat(USER, ",\"tools\":[" + TOOL + "]"))
                        .path("choices")
                        .path(0);
        assertThat(choice.path("finish_reason").asText()).isEqualTo("length");
        assertThat(choice.path("message").path("content").isNull()).isTrue();
        requireCall(choice.path("message").path("tool_calls"));
    }

    @Test
    void withoutToolsOrWithNoneATextIsAText() {
        say(FinishReason.STOP, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>");
        for (String more : List.of("", ",\"tool_choice\":\"none\",\"tools\":[" + TOOL + "]")) {
            JsonNode choice =
                    post(200, "/v1/chat/completions", chat(USER, more)).path("choices").path(0);
            assertThat(choice.path("message").path("content").asText()).startsWith("<tool_call>");
            assertThat(choice.path("finish_reason").asText()).isEqualTo("stop");
        }
    }

    @Test
    void onlyOneCallIfNotInParallel() {
        String call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        say(FinishReason.STOP, call + call);
        JsonNode message =
                post(
                                200,
                                "/v1/chat/completions",
                                chat(
                                        USER,
                                        ",\"parallel_tool_calls\":false,\"tools\":[" + TOOL + "]"))
                        .path("choices")
                        .path(0)
                        .path("message");
        assertThat(message.path("tool_calls")).hasSize(1);
    }

    @Test
    void theTemplatesOwnVariablesReachIt() {
        post(
                200,
                "/v1/chat/completions",
                chat(
                        USER,
                        ",\"chat_template_kwargs\":{\"style\":\"terse\"},\"reasoning_effort\":\"low\",\"documents\":[{\"text\":\"D\"}]"));
        assertThat(prompt()).isEqualTo("[user: Hi]docs D terse low[assistant: ");
        post(200, "/v1/chat/completions", chat(USER, ",\"add_generation_prompt\":false"));
        assertThat(prompt()).isEqualTo("[user: Hi]");
    }

    @Test
    void aFinalMessageIsContinuedAndMayBeEchoed() {
        String messages = USER + ",{\"role\":\"assistant\",\"content\":\"I am \"}";
        JsonNode answer =
                post(
                        200,
                        "/v1/chat/completions",
                        chat(
                                messages,
                                ",\"add_generation_prompt\":false,\"continue_final_message\":true,\"echo\":true"));
        assertThat(prompt()).isEqualTo("[user: Hi][assistant: I am ");
        assertThat(answer.path("choices").path(0).path("message").path("content").asText())
                .isEqualTo("I am Hello world");
        JsonNode own = post(200, "/v1/chat/completions", chat(USER, ",\"echo\":true"));
        assertThat(own.path("choices").path(0).path("message").path("content").asText())
                .isEqualTo("Hello world");
    }
}
