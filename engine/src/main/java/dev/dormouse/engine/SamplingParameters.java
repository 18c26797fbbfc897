package dev.dormouse.engine;

import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How tokens are chosen, and when a sequence ends. Names and defaults are vLLM's.
 *
 * @param temperature below 0.00001 is greedy
 * @param topK keep the k most likely tokens; 0 or -1 keeps all
 * @param topP keep the smallest set whose probability reaches this
 * @param minP drop tokens below this share of the most likely token's probability
 * @param seed makes a sampled sequence repeatable; null draws one
 * @param repetitionPenalty above 1 makes tokens of prompt and output less likely
 * @param presencePenalty subtracted once from tokens of the output
 * @param frequencyPenalty subtracted per occurrence from tokens of the output
 * @param maxTokens output tokens at most
 * @param minTokens no end or stop token before this many
 * @param stop strings that end the sequence
 * @param stopTokenIds tokens that end the sequence
 * @param ignoreEos go on after an end token
 * @param logprobs how many likely tokens to report per output token; null for none
 * @param promptLogprobs how many likely tokens to report per prompt token; null for none
 * @param tokenRules which tokens may be chosen, and which are preferred
 * @param includeStop whether the text ends with the stop string or token that was met
 * @param skipSpecialTokens whether control tokens give no text
 */
public record SamplingParameters(
        double temperature,
        int topK,
        double topP,
        double minP,
        @Nullable Long seed,
        double repetitionPenalty,
        double presencePenalty,
        double frequencyPenalty,
        int maxTokens,
        int minTokens,
        List<String> stop,
        Set<Integer> stopTokenIds,
        boolean ignoreEos,
        @Nullable Integer logprobs,
        @Nullable Integer promptLogprobs,
        TokenRules tokenRules,
        boolean includeStop,
        boolean skipSpecialTokens) {
    /** Likely tokens that may be asked for; as in vLLM and in OpenAI's API. */
    private static final int MAX_LOGPROBS = 20;

    /** A value that is out of its range. */
    public static final class OutOfRangeException extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        private final String field;

        OutOfRangeException(String field, String message) {
            super(message);
            this.field = field;
        }

        /** The API's name of the field. */
        public String field() {
            return field;
        }
    }

    /**
     * Checks every range; the message names the API's own field.
     *
     * @throws OutOfRangeException for the first value that is out of its range
     */
    public SamplingParameters {
        stop = List.copyOf(stop);
        stopTokenIds = Set.copyOf(stopTokenIds);
        require(
                temperature >= 0 && temperature <= 100,
                "temperature",
                temperature,
                "between 0 and 100");
        require(topK >= -1, "top_k", topK, "-1 or 0 (all), or at least 1");
        require(topP > 0 && topP <= 1, "top_p", topP, "above 0 and at most 1");
        require(minP >= 0 && minP <= 1, "min_p", minP, "between 0 and 1");
        require(
                repetitionPenalty > 0 && repetitionPenalty <= 100,
                "repetition_penalty",
                repetitionPenalty,
                "above 0");
        require(
                Math.abs(presencePenalty) <= 2,
                "presence_penalty",
                presencePenalty,
                "between -2 and 2");
        require(
                Math.abs(frequencyPenalty) <= 2,
                "frequency_penalty",
                frequencyPenalty,
                "between -2 and 2");
        require(maxTokens >= 1, "max_tokens", maxTokens, "at least 1");
        require(
                minTokens >= 0 && minTokens <= maxTokens,
                "min_tokens",
                minTokens,
                "between 0 and max_tokens");
        requireLogprobs("logprobs", logprobs);
        requireLogprobs("prompt_logprobs", promptLogprobs);
        for (String s : stop) {
            require(!s.isEmpty(), "stop", "\"\"", "not empty");
        }
    }

    /** With all tokens allowed, and nothing reported of the prompt. */
    public SamplingParameters(
            double temperature,
            int topK,
            double topP,
            double minP,
            @Nullable Long seed,
            double repetitionPenalty,
            double presencePenalty,
            double frequencyPenalty,
            int maxTokens,
            int minTokens,
            List<String> stop,
            Set<Integer> stopTokenIds,
            boolean ignoreEos,
            @Nullable Integer logprobs) {
        this(
                temperature,
                topK,
                topP,
                minP,
                seed,
                repetitionPenalty,
                presencePenalty,
                frequencyPenalty,
                maxTokens,
                minTokens,
                stop,
                stopTokenIds,
                ignoreEos,
                logprobs,
                null,
                TokenRules.NONE,
                false,
                true);
    }

    /** Greedy decoding of {@code maxTokens} tokens. */
    public static SamplingParameters greedy(int maxTokens) {
        return new SamplingParameters(
                0, 0, 1, 0, null, 1, 0, 0, maxTokens, 0, List.of(), Set.of(), false, null);
    }

    /** The same with another seed. */
    public SamplingParameters withSeed(long other) {
        return new SamplingParameters(
                temperature,
                topK,
                topP,
                minP,
                other,
                repetitionPenalty,
                presencePenalty,
                frequencyPenalty,
                maxTokens,
                minTokens,
                stop,
                stopTokenIds,
                ignoreEos,
                logprobs,
                promptLogprobs,
                tokenRules,
                includeStop,
                skipSpecialTokens);
    }

    private static void requireLogprobs(String field, @Nullable Integer count) {
        require(
                count == null || (count >= 0 && count <= MAX_LOGPROBS),
                field,
                count,
                "between 0 and " + MAX_LOGPROBS);
    }

    private static void require(boolean holds, String field, @Nullable Object value, String range) {
        if (!holds) {
            throw new OutOfRangeException(field, field + " is " + value + ", but must be " + range);
        }
    }
}
