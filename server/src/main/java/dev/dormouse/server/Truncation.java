package dev.dormouse.server;

import org.jspecify.annotations.Nullable;

/**
 * Which part of a long prompt is kept: {@code truncate_prompt_tokens} and {@code truncation_side}.
 *
 * @param length tokens at most
 * @param last whether the last ones are kept, not the first ones
 */
record Truncation(int length, boolean last) {
    /** Reads the fields; −1 keeps what fits before the output. */
    static Truncation of(RequestBody body, int maxModelLength, MaxTokens maxTokens) {
        @Nullable Long length = body.integer("truncate_prompt_tokens");
        @Nullable String side = body.text("truncation_side");
        if (side != null && !side.equals("left") && !side.equals("right")) {
            throw ApiException.badRequest(
                    "truncation_side", "truncation_side must be left or right, but is " + side);
        }
        boolean last = !"right".equals(side);
        if (length == null) {
            return new Truncation(Integer.MAX_VALUE, last);
        }
        int longest = maxModelLength - 1;
        if (length == -1) {
            long room = maxModelLength - (maxTokens.limit() == null ? 1 : maxTokens.limit());
            return new Truncation(Math.toIntExact(Math.clamp(room, 1, longest)), last);
        }
        if (length < 1 || length > longest) {
            throw ApiException.badRequest(
                    "truncate_prompt_tokens",
                    "truncate_prompt_tokens is "
                            + length
                            + ", but must be -1 (what fits) or between 1 and "
                            + longest);
        }
        return new Truncation(length.intValue(), last);
    }

    /** The first token that is kept. */
    int from(int tokens) {
        return last ? Math.max(0, tokens - length) : 0;
    }

    /** One behind the last token that is kept. */
    int to(int tokens) {
        return last ? tokens : Math.min(tokens, length);
    }
}
