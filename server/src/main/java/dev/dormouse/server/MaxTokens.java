package dev.dormouse.server;

import org.jspecify.annotations.Nullable;

/**
 * The most tokens that a request wants of each choice.
 *
 * @param field where it says so
 * @param limit the number; null for all that fits
 */
record MaxTokens(String field, @Nullable Long limit) {
    MaxTokens {
        if (limit != null && (limit < 1 || limit > Integer.MAX_VALUE)) {
            throw ApiException.badRequest(
                    field,
                    "%s is %d, but must be at least 1 and at most %d"
                            .formatted(field, limit, Integer.MAX_VALUE));
        }
    }

    /** Tokens for a sequence with that much room behind its prompt. */
    int within(int room) {
        return limit == null ? Math.max(1, room) : limit.intValue();
    }
}
