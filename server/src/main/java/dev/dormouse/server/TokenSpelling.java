package dev.dormouse.server;

import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;

/**
 * Single tokens as text; bytes that are no whole character become replacement characters.
 *
 * @param asIds whether tokens are told by number, as in {@code return_tokens_as_token_ids}
 */
record TokenSpelling(Tokenizer tokenizer, boolean asIds) {
    String of(int token) {
        return asIds
                ? "token_id:" + token
                : new String(tokenizer.tokenBytes(token), StandardCharsets.UTF_8);
    }

    /** JSON has no infinities; vLLM writes this instead. */
    static float finite(float logprob) {
        return Math.max(logprob, -9999f);
    }
}
