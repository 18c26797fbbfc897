package dev.dormouse.engine.sampling;

import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.PromptToken;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Log probabilities of one row of logits.
 *
 * @param logSum natural logarithm of the sum of all exponentials
 * @param top the likeliest tokens, likeliest first
 */
record Logprobs(double logSum, List<Candidate> top) {
    /** Less likely first; of equals, the later token first, so that it is the first to go. */
    private static final Comparator<Candidate> LEAST_FIRST =
            Comparator.comparingDouble(Candidate::logprob)
                    .thenComparing(Candidate::tokenId, Comparator.reverseOrder());

    static Logprobs of(float[] values, int from, int to, int count) {
        float max = values[from + Sampler.argmax(values, from, to)];
        double sum = 0;
        for (int i = from; i < to; i++) {
            sum += Math.exp((double) values[i] - max);
        }
        double logSum = max + Math.log(sum);
        PriorityQueue<Candidate> best = new PriorityQueue<>(LEAST_FIRST);
        for (int i = from; i < to && count > 0; i++) {
            if (best.size() < count || values[i] - logSum > best.peek().logprob()) {
                best.add(new Candidate(i - from, (float) (values[i] - logSum)));
                if (best.size() > count) {
                    best.remove();
                }
            }
        }
        List<Candidate> top = new ArrayList<>(best);
        top.sort(LEAST_FIRST.reversed());
        return new Logprobs(logSum, List.copyOf(top));
    }

    /** What one row says of a token that is known. */
    static PromptToken known(float[] values, int from, int to, int token, int count) {
        Logprobs row = of(values, from, to, count);
        float value = values[from + token];
        int rank = 0;
        for (int i = from; i < to; i++) {
            rank += values[i] >= value ? 1 : 0;
        }
        return new PromptToken(new TokenLogprobs(token, row.logprob(value), row.top()), rank);
    }

    float logprob(float logit) {
        return (float) (logit - logSum);
    }
}
