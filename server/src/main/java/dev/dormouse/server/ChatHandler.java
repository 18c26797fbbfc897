package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.chat.ChatMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** {@code POST /v1/chat/completions}: from messages, through the model's chat template. */
final class ChatHandler implements JobSource {
    private static final List<String> UNSUPPORTED =
            List.of(
                    "audio",
                    "chat_template",
                    "chat_template_kwargs",
                    "documents",
                    "echo",
                    "function_call",
                    "functions",
                    "tools");

    /** As in OpenAI's API. */
    private static final int MAX_TOP_LOGPROBS = 20;

    private final ModelText text;
    private final JobReader reader;
    private final AnswerFormat format;

    ChatHandler(JobReader reader, ModelText text) {
        this.text = text;
        this.reader = reader;
        this.format = new ChatFormat(text.tokenizer());
    }

    @Override
    public Job job(RequestBody body, String requestId) {
        body.refuse(UNSUPPORTED);
        JsonNode toolChoice = body.node("tool_choice");
        if (toolChoice != null && !Set.of("none", "auto").contains(toolChoice.asText())) {
            throw ApiException.badRequest(
                    "tool_choice", "tool_choice must be none or auto, since there are no tools");
        }
        var _ = reader.choices(body, 1);
        List<Integer> prompt = prompt(body);
        String field =
                body.node("max_completion_tokens") != null ? "max_completion_tokens" : "max_tokens";
        @Nullable Long maxTokens = body.integer(field);
        String id = "chatcmpl-" + requestId;
        return reader.read(
                body,
                format,
                id,
                _ -> id, // as vLLM's, whose push connector goes by it
                List.of(prompt),
                tokens -> reader.roomOr(maxTokens, field, tokens),
                logprobs(body));
    }

    private static @Nullable Integer logprobs(RequestBody body) {
        int top = body.integer("top_logprobs", 0);
        if (!body.flag("logprobs", false)) {
            if (body.node("top_logprobs") != null && top != 0) {
                throw ApiException.badRequest(
                        "top_logprobs", "top_logprobs needs logprobs to be true");
            }
            return null;
        }
        if (top < 0 || top > MAX_TOP_LOGPROBS) {
            throw ApiException.badRequest(
                    "top_logprobs",
                    "top_logprobs is " + top + ", but must be between 0 and " + MAX_TOP_LOGPROBS);
        }
        return top;
    }

    private List<Integer> prompt(RequestBody body) {
        String rendered;
        try {
            rendered =
                    text.chatTemplate()
                            .render(messages(body), body.flag("add_generation_prompt", true));
        } catch (ModelException e) {
            throw ApiException.badRequest(
                    "messages", "the chat template refuses the messages: " + e.getMessage());
        }
        // The template writes the special tokens itself.
        boolean special = body.flag("add_special_tokens", false);
        return reader.prompt("messages", text.tokenizer().encode(rendered, special, true));
    }

    private static List<ChatMessage> messages(RequestBody body) {
        JsonNode messages = body.node("messages");
        if (messages == null) {
            throw ApiException.badRequest("messages", "messages is missing");
        }
        RequestBody.requireArray("messages", messages, "a list of messages");
        List<ChatMessage> list = new ArrayList<>();
        for (JsonNode message : messages) {
            JsonNode role = message.path("role");
            if (!role.isTextual()) {
                throw ApiException.badRequest(
                        "messages", "message " + list.size() + " has no role");
            }
            list.add(
                    new ChatMessage(
                            role.textValue(), content(list.size(), message.path("content"))));
        }
        if (list.isEmpty()) {
            throw ApiException.badRequest(
                    "messages", "messages is empty, but must have at least one message");
        }
        return list;
    }

    /** A string, or a list of text parts. */
    private static String content(int index, JsonNode content) {
        if (content.isTextual()) {
            return content.textValue();
        }
        StringBuilder text = new StringBuilder();
        if (!content.isArray()) {
            throw ApiException.badRequest(
                    "messages",
                    "the content of message "
                            + index
                            + " must be a string or a list of text parts");
        }
        for (JsonNode part : content) {
            if (!"text".equals(part.path("type").asText()) || !part.path("text").isTextual()) {
                throw ApiException.badRequest(
                        "messages",
                        "message "
                                + index
                                + " has a part that is not text; this model takes text only");
            }
            text.append(part.path("text").textValue());
        }
        return text.toString();
    }
}
