package dev.dormouse.server;

import dev.dormouse.engine.SamplingParameters;
import java.util.HashSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads sampling parameters from a request body, by the names of OpenAI's API and of vLLM's
 * additions to it.
 */
final class SamplingFields {
    /**
     * Fields that would change prompt or output and are not understood: silence about them would be
     * a wrong answer.
     */
    private static final List<String> UNSUPPORTED =
            List.of(
                    "allowed_token_ids",
                    "bad_words",
                    "best_of",
                    "continue_final_message",
                    "guided_choice",
                    "guided_grammar",
                    "guided_json",
                    "guided_regex",
                    "logit_bias",
                    "logits_processors",
                    "prompt_embeds",
                    "prompt_logprobs",
                    "structural_tag",
                    "structured_outputs",
                    "suffix",
                    "thinking_token_budget",
                    "truncate_prompt_tokens",
                    "use_beam_search");

    private final int vocabularySize;

    SamplingFields(int vocabularySize) {
        this.vocabularySize = vocabularySize;
    }

    /**
     * Reads and checks.
     *
     * @param maxTokens the limit that the endpoint found or chose
     * @param logprobs likely tokens to report, or null
     */
    SamplingParameters read(RequestBody body, int maxTokens, @Nullable Integer logprobs) {
        refuseUnsupported(body);
        List<Integer> stopTokenIds = body.integers("stop_token_ids");
        for (int token : stopTokenIds) {
            if (token < 0 || token >= vocabularySize) {
                throw ApiException.badRequest(
                        "stop_token_ids",
                        "stop_token_ids has "
                                + token
                                + ", but the vocabulary ends at "
                                + (vocabularySize - 1));
            }
        }
        try {
            return new SamplingParameters(
                    body.number("temperature", 1),
                    body.integer("top_k", 0),
                    body.number("top_p", 1),
                    body.number("min_p", 0),
                    body.integer("seed"),
                    body.number("repetition_penalty", 1),
                    body.number("presence_penalty", 0),
                    body.number("frequency_penalty", 0),
                    maxTokens,
                    body.integer("min_tokens", 0),
                    body.texts("stop"),
                    new HashSet<>(stopTokenIds),
                    body.flag("ignore_eos", false),
                    logprobs);
        } catch (SamplingParameters.OutOfRangeException e) {
            throw ApiException.badRequest(e.field(), String.valueOf(e.getMessage()));
        }
    }

    private static void refuseUnsupported(RequestBody body) {
        body.refuse(UNSUPPORTED);
        if (!body.flag("skip_special_tokens", true)) {
            throw ApiException.badRequest(
                    "skip_special_tokens", "skip_special_tokens must be true");
        }
        if (body.flag("include_stop_str_in_output", false)) {
            throw ApiException.badRequest(
                    "include_stop_str_in_output", "include_stop_str_in_output must be false");
        }
        if (body.node("response_format") != null
                && !"text".equals(body.node("response_format").path("type").asText())) {
            throw ApiException.badRequest(
                    "response_format", "response_format must be of type text");
        }
    }
}
