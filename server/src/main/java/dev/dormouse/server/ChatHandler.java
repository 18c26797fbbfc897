package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.chat.ChatMessage;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code POST /v1/chat/completions}: from messages, through the model's chat template. */
final class ChatHandler implements JobSource {
    private static final List<String> UNSUPPORTED =
            List.of("tools", "functions", "chat_template", "chat_template_kwargs");

    private final ModelText text;
    private final JobReader reader;
    private final AnswerFormat format;

    ChatHandler(EngineInfo info, ModelText text) {
        this.text = text;
        this.reader = new JobReader(info);
        this.format = new ChatFormat(text.tokenizer());
    }

    @Override
    public Job job(RequestBody body, String requestId) {
        for (String field : UNSUPPORTED) {
            if (body.node(field) != null) {
                throw ApiException.badRequest(field, field + " is not supported; leave it out");
            }
        }
        List<Integer> prompt = prompt(body);
        String field =
                body.node("max_completion_tokens") != null ? "max_completion_tokens" : "max_tokens";
        @Nullable Long maxTokens = body.integer(field);
        return reader.read(
                body,
                format,
                "chatcmpl-",
                requestId,
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
        List<Integer> tokens = new ArrayList<>();
        // The template writes the special tokens itself.
        for (int token :
                text.tokenizer().encode(rendered, body.flag("add_special_tokens", false), true)) {
            tokens.add(token);
        }
        return reader.requireTokens("messages", tokens);
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
