package dev.dormouse.server;

import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;

/** A single token as text; bytes that are no whole character become replacement characters. */
final class TokenText {
    private TokenText() {}

    static String of(Tokenizer tokenizer, int token) {
        return new String(tokenizer.tokenBytes(token), StandardCharsets.UTF_8);
    }
}
