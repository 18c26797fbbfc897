package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.model.chat.ChatMessage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the messages of a chat request. */
final class ChatMessages {
    private ChatMessages() {}

    /** At least one message. */
    static List<ChatMessage> read(RequestBody body) {
        JsonNode messages = body.list("messages");
        if (messages == null) {
            throw ApiException.badRequest("messages", "messages is missing");
        }
        List<ChatMessage> list = new ArrayList<>();
        for (JsonNode message : messages) {
            list.add(message(list.size(), message));
        }
        if (list.isEmpty()) {
            throw ApiException.badRequest(
                    "messages", "messages is empty, but must have at least one message");
        }
        return list;
    }

    private static ChatMessage message(int index, JsonNode message) {
        JsonNode role = message.path("role");
        if (!role.isTextual()) {
            throw ApiException.badRequest("messages", "message " + index + " has no role");
        }
        JsonNode calls = message.path("tool_calls");
        Map<String, @Nullable Object> fields = new HashMap<>();
        message.properties()
                .forEach(entry -> fields.put(entry.getKey(), RequestBody.plain(entry.getValue())));
        fields.keySet().removeAll(List.of("role", "content"));
        if (calls.isArray()) {
            fields.put("tool_calls", RequestBody.plain(withReadArguments(calls)));
        }
        boolean speechless =
                calls.isArray() && !calls.isEmpty() && isAbsent(message.get("content"));
        return new ChatMessage(
                role.textValue(),
                speechless ? null : content(index, message.path("content")),
                fields);
    }

    private static boolean isAbsent(@Nullable JsonNode node) {
        return node == null || node.isNull();
    }

    /** The API writes a call's arguments as text, templates expect the object that it says. */
    private static JsonNode withReadArguments(JsonNode calls) {
        JsonNode copy = calls.deepCopy();
        for (JsonNode call : copy) {
            if (call.path("function") instanceof ObjectNode function) {
                JsonNode read = RequestBody.tryJson(function.path("arguments").asText());
                if (read.isObject()) {
                    function.set("arguments", read);
                }
            }
        }
        return copy;
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
