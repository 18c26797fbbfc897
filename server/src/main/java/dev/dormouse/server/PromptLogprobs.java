package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.PromptToken;
import java.util.List;

/**
 * vLLM's {@code prompt_logprobs}: for each prompt token a map of likely tokens, itself included.
 */
final class PromptLogprobs {
    private PromptLogprobs() {}

    /** Puts them; nothing predicts the first token, whose entry is null. */
    static void put(ObjectNode home, List<PromptToken> scores, int top, TokenSpelling spelling) {
        ArrayNode list = home.putArray("prompt_logprobs");
        list.addNull();
        for (PromptToken score : scores) {
            ObjectNode json = list.addObject();
            putToken(
                    json,
                    score.logprobs().tokenId(),
                    score.logprobs().logprob(),
                    score.rank(),
                    spelling);
            int rank = 1;
            for (Candidate candidate :
                    score.logprobs()
                            .top()
                            .subList(0, Math.min(top, score.logprobs().top().size()))) {
                if (candidate.tokenId() != score.logprobs().tokenId()) {
                    putToken(json, candidate.tokenId(), candidate.logprob(), rank, spelling);
                }
                rank++;
            }
        }
    }

    private static void putToken(
            ObjectNode json, int token, float logprob, int rank, TokenSpelling spelling) {
        json.putObject(Integer.toString(token))
                .put("logprob", TokenSpelling.finite(logprob))
                .put("rank", rank)
                .put("decoded_token", spelling.of(token));
    }
}
