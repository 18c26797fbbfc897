package dev.dormouse.model.chat;

/**
 * One message of a conversation.
 *
 * @param role who speaks: {@code system}, {@code user}, {@code assistant}, or what the template
 *     knows besides
 * @param content the text, exactly as it was written
 */
public record ChatMessage(String role, String content) {}
