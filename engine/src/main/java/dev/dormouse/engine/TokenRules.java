package dev.dormouse.engine;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Which tokens may be chosen, and which are preferred.
 *
 * @param bias added to the tokens' logits
 * @param allowed the only tokens that may be chosen, at least one; null allows all
 * @param banned runs of tokens that the output must not contain, each of at least one token
 */
public record TokenRules(
        Map<Integer, Float> bias, @Nullable Set<Integer> allowed, List<List<Integer>> banned) {
    /** No rule. */
    public static final TokenRules NONE = new TokenRules(Map.of(), null, List.of());

    /** Copies everything. */
    public TokenRules {
        bias = Map.copyOf(bias);
        allowed = allowed == null ? null : Set.copyOf(allowed);
        banned = banned.stream().map(List::copyOf).toList();
        if (allowed != null && allowed.isEmpty()) {
            throw new IllegalArgumentException("token rules: no token is allowed");
        }
        if (banned.stream().anyMatch(List::isEmpty)) {
            throw new IllegalArgumentException("token rules: a banned run of tokens is empty");
        }
    }
}
