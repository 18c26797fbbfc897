package dev.dormouse.engine.sampling;

import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Applies one sequence's rules to its rows of logits: tokens that may not come next become
 * impossible, others get their bias.
 */
final class TokenFilter {
    private final SamplingParameters parameters;
    private final TokenRules rules;
    private final Set<Integer> endTokens;
    private final List<Integer> output = new ArrayList<>();
    private int taken;

    TokenFilter(SamplingParameters parameters, Set<Integer> endTokens) {
        this.parameters = parameters;
        this.rules = parameters.tokenRules();
        this.endTokens = endTokens;
    }

    /** Remembers a chosen token. */
    void add(int token) {
        taken++;
        if (!rules.banned().isEmpty()) {
            output.add(token);
        }
    }

    /**
     * Changes a row.
     *
     * @throws NoTokenLeftException if no token is possible any more
     */
    void apply(float[] values, int from, int to) {
        boolean masked = !rules.bias().isEmpty();
        Set<Integer> allowed = rules.allowed();
        if (allowed != null) {
            masked = true;
            for (int i = from; i < to; i++) {
                if (!allowed.contains(i - from)) {
                    values[i] = Float.NEGATIVE_INFINITY;
                }
            }
        }
        for (List<Integer> run : rules.banned()) {
            if (endsWithBeginningOf(run)) {
                values[from + run.getLast()] = Float.NEGATIVE_INFINITY;
                masked = true;
            }
        }
        rules.bias().forEach((token, bias) -> values[from + token] += bias);
        if (taken < parameters.minTokens()) {
            maskEnds(values, from);
            masked = true;
        }
        if (masked && values[from + Sampler.argmax(values, from, to)] == Float.NEGATIVE_INFINITY) {
            throw new NoTokenLeftException();
        }
    }

    /** True if the run's last token would complete it. */
    private boolean endsWithBeginningOf(List<Integer> run) {
        int beginning = run.size() - 1;
        return beginning <= output.size()
                && output.subList(output.size() - beginning, output.size())
                        .equals(run.subList(0, beginning));
    }

    private void maskEnds(float[] values, int from) {
        if (!parameters.ignoreEos()) {
            for (int token : endTokens) {
                values[from + token] = Float.NEGATIVE_INFINITY;
            }
        }
        for (int token : parameters.stopTokenIds()) {
            values[from + token] = Float.NEGATIVE_INFINITY;
        }
    }
}
