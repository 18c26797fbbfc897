package dev.dormouse.model.chat;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One message of a conversation.
 *
 * @param role who speaks: {@code system}, {@code user}, {@code assistant}, or what the template
 *     knows besides
 * @param content the text, exactly as it was written; null if the message has none
 * @param fields what else the template may ask for, such as {@code tool_calls}: texts, numbers,
 *     truth values, null, and lists and maps of them
 */
public record ChatMessage(
        String role, @Nullable String content, Map<String, @Nullable Object> fields) {
    /** A message of text only. */
    public ChatMessage(String role, String content) {
        this(role, content, Map.of());
    }
}
