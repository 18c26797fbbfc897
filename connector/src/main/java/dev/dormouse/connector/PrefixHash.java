package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * Tells the first tokens of a request, its prompt and then its output, from any others, so that no
 * engine reads KV of other tokens for them. Computed when it is asked for.
 */
@FunctionalInterface
public interface PrefixHash {
    /** Nothing is known of the tokens. */
    PrefixHash UNKNOWN = _ -> null;

    /**
     * The hash of the first {@code count} tokens. Every engine computes it in the same way.
     *
     * @param count at most as many as there are
     * @return null if it is not known
     */
    @Nullable String of(int count);
}
