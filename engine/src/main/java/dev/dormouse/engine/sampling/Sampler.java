package dev.dormouse.engine.sampling;

import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.model.Logits;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Chooses one sequence's tokens. It knows the sequence's history, so it lives as long as the
 * sequence, also across preemption.
 *
 * <p>Order as in vLLM: allowed tokens, banned words, bias, end tokens masked below {@code
 * min_tokens}, penalties, temperature, {@code min_p}, {@code top_k}, {@code top_p}. Log
 * probabilities are those of the model, before any of it.
 */
public final class Sampler {
    /** As in vLLM: a smaller temperature is greedy, since dividing by it leaves no numbers. */
    private static final double SMALLEST_TEMPERATURE = 1e-5;

    private final SamplingParameters parameters;
    private final TokenFilter filter;
    private final @Nullable Penalties penalties;
    private final SplittableRandom random;

    /**
     * A sampler at the start of its sequence.
     *
     * @param parameters the request's
     * @param promptTokens the prompt, which repetition is measured against
     * @param endTokens the model's own end tokens
     * @param drawnSeed used if the request names no seed
     */
    public Sampler(
            SamplingParameters parameters,
            List<Integer> promptTokens,
            Set<Integer> endTokens,
            long drawnSeed) {
        this.parameters = parameters;
        this.filter = new TokenFilter(parameters, endTokens);
        this.penalties =
                Penalties.isNeutral(parameters) ? null : new Penalties(parameters, promptTokens);
        this.random =
                new SplittableRandom(parameters.seed() != null ? parameters.seed() : drawnSeed);
    }

    /**
     * Chooses the next token, and remembers it.
     *
     * @param logits the step's logits; the row's content is changed
     * @param row the sequence's row
     * @param candidates working space, shared by the samplers of one thread
     * @throws NoTokenLeftException if the request's rules exclude every token
     */
    public SampledToken next(Logits logits, int row, Candidates candidates) {
        float[] values = logits.values();
        int from = logits.offset(row);
        int to = from + logits.vocabularySize();
        @Nullable Integer wanted = parameters.logprobs();
        @Nullable Logprobs raw = wanted == null ? null : Logprobs.of(values, from, to, wanted);
        // The row is about to be changed, but the chosen token's log probability is the model's
        // own.
        float @Nullable [] original =
                raw == null ? null : java.util.Arrays.copyOfRange(values, from, to);
        filter.apply(values, from, to);
        if (penalties != null) {
            penalties.apply(values, from);
        }
        int token = isGreedy() ? argmax(values, from, to) : draw(values, from, to, candidates);
        remember(token);
        return new SampledToken(token, logprobsOf(token, raw, original));
    }

    /**
     * Remembers a token that another sampler chose with the same parameters at the same place, and
     * goes on as if it had been chosen here.
     */
    public void skip(int token) {
        if (!isGreedy()) {
            double _ = random.nextDouble();
        }
        remember(token);
    }

    private boolean isGreedy() {
        return parameters.temperature() < SMALLEST_TEMPERATURE;
    }

    private void remember(int token) {
        filter.add(token);
        if (penalties != null) {
            penalties.add(token);
        }
    }

    private static @Nullable TokenLogprobs logprobsOf(
            int token, @Nullable Logprobs raw, float @Nullable [] original) {
        return raw == null || original == null
                ? null
                : new TokenLogprobs(token, raw.logprob(original[token]), raw.top());
    }

    private int draw(float[] values, int from, int to, Candidates candidates) {
        candidates.fill(values, from, to, (float) parameters.temperature());
        candidates.keepAbove(parameters.minP());
        candidates.keepLikeliest(parameters.topK());
        candidates.keepProbability(parameters.topP());
        return candidates.draw(random.nextDouble());
    }

    /** The first of the largest values; NaN, which no sound model gives, never wins. */
    static int argmax(float[] values, int from, int to) {
        int best = from;
        float most = values[from];
        for (int i = from + 1; i < to; i++) {
            float value = values[i];
            // The first comparison alone settles nearly every token of a vocabulary.
            if (!(value <= most) && (value > most || Float.isNaN(most))) {
                best = i;
                most = value;
            }
        }
        return best - from;
    }
}
