package dev.dormouse.server;

import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.tokenizer.Tokenizer;

/**
 * How the served model reads and writes text.
 *
 * @param tokenizer the model's tokenizer
 * @param chatTemplate the model's chat template
 */
public record ModelText(Tokenizer tokenizer, ChatTemplate chatTemplate) {}
