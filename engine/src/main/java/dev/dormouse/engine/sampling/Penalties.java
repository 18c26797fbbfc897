package dev.dormouse.engine.sampling;

import dev.dormouse.engine.SamplingParameters;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Repetition, presence and frequency penalties of one sequence. Repetition counts tokens of prompt
 * and output; presence and frequency count those of the output only, as in the OpenAI API.
 */
final class Penalties {
    private final SamplingParameters parameters;
    private final Set<Integer> seen;
    private final Map<Integer, Integer> outputCounts = new HashMap<>();

    Penalties(SamplingParameters parameters, List<Integer> promptTokens) {
        this.parameters = parameters;
        this.seen = new HashSet<>(promptTokens);
    }

    static boolean isNeutral(SamplingParameters p) {
        return p.repetitionPenalty() == 1 && p.presencePenalty() == 0 && p.frequencyPenalty() == 0;
    }

    void apply(float[] values, int from) {
        float repetition = (float) parameters.repetitionPenalty();
        if (repetition != 1) {
            for (int token : seen) {
                float value = values[from + token];
                values[from + token] = value > 0 ? value / repetition : value * repetition;
            }
        }
        outputCounts.forEach(
                (token, count) ->
                        values[from + token] -=
                                (float)
                                        (parameters.presencePenalty()
                                                + count * parameters.frequencyPenalty()));
    }

    void add(int token) {
        seen.add(token);
        outputCounts.merge(token, 1, Integer::sum);
    }
}
