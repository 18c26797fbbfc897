package dev.dormouse.model.chat;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How a conversation is written.
 *
 * @param addGenerationPrompt whether to end with the opening of the assistant's turn
 * @param continueFinalMessage whether to end behind the last message's text, so that the model goes
 *     on with it
 * @param variables further variables of the template, such as {@code tools}: of the same types as a
 *     message's fields
 */
public record ChatSettings(
        boolean addGenerationPrompt,
        boolean continueFinalMessage,
        Map<String, @Nullable Object> variables) {}
