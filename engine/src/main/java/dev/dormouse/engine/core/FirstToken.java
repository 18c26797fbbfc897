package dev.dormouse.engine.core;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * The first token of a request's output, between two engines: whoever computes the prompt chooses
 * it anyhow, and whoever reads the prompt's KV takes it, if it would have chosen the same itself,
 * or drawn it just as likely.
 *
 * @param sampling all that the choice depends on besides prompt and model; null if no other engine
 *     has to do with the request, if that cannot be told, or if the token alone is not all that the
 *     client wants of it
 * @param told what the prompt's producer chose so; empty if it did not, or told nothing
 */
record FirstToken(@Nullable String sampling, OptionalInt told) {
    /**
     * That of a request.
     *
     * @param vocabularySize no token outside it is taken
     */
    static FirstToken of(GenerationRequest request, int vocabularySize) {
        KvTransferParams params = request.kvTransferParams();
        String sampling = params == null ? null : sampling(request.sampling());
        OptionalInt told =
                sampling == null || params == null
                        ? OptionalInt.empty()
                        : params.firstToken(sampling);
        return new FirstToken(
                sampling,
                told.isPresent() && told.getAsInt() < vocabularySize ? told : OptionalInt.empty());
    }

    /** The parameters of a hand-over with the token that was chosen, where that can be told. */
    KvTransferParams addTo(KvTransferParams params, int tokenId) {
        return sampling == null ? params : params.withFirstToken(tokenId, sampling);
    }

    private static @Nullable String sampling(SamplingParameters parameters) {
        if (parameters.logprobs() != null
                || parameters.minTokens() > 0
                || !parameters.tokenRules().equals(TokenRules.NONE)) {
            return null;
        }
        // Begins differently once the same parameters and seed choose other tokens than before.
        return "v1 temperature=%s top_k=%s top_p=%s min_p=%s seed=%s repetition_penalty=%s presence_penalty=%s frequency_penalty=%s"
                .formatted(
                        parameters.temperature(),
                        parameters.topK(),
                        parameters.topP(),
                        parameters.minP(),
                        parameters.seed(),
                        parameters.repetitionPenalty(),
                        parameters.presencePenalty(),
                        parameters.frequencyPenalty());
    }
}
