package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reads sampling parameters from a request body, by the names of OpenAI's API and of vLLM's
 * additions to it.
 */
final class SamplingFields {
    /**
     * Fields that would change prompt, output or who shares it, and are not understood: silence
     * about them would be a wrong answer.
     */
    private static final List<String> UNSUPPORTED =
            List.of(
                    "cache_salt",
                    "ec_transfer_params",
                    "guided_choice",
                    "guided_grammar",
                    "guided_json",
                    "guided_regex",
                    "guided_whitespace_pattern",
                    "logits_processors",
                    "logprob_token_ids",
                    "prompt_embeds",
                    "repetition_detection",
                    "structural_tag",
                    "structured_outputs",
                    "suffix",
                    "thinking_token_budget",
                    "use_beam_search",
                    "vllm_xargs",
                    "watermarking");

    /** Each is looked for in each new piece of text. */
    private static final int MAX_STOPS = 64;

    private static final int MAX_STOP_LENGTH = 1000;

    /** Each is compared with each new token. */
    private static final int MAX_BAD_WORDS = 1000;

    /** As in OpenAI's API; what is beyond is as good as the limit. */
    private static final double MAX_BIAS = 100;

    private final Tokenizer tokenizer;
    private final int vocabularySize;

    SamplingFields(Tokenizer tokenizer, int vocabularySize) {
        this.tokenizer = tokenizer;
        this.vocabularySize = vocabularySize;
    }

    /**
     * Reads and checks.
     *
     * @param maxTokens the limit that the endpoint found or chose
     * @param logprobs likely tokens to report, or null
     * @param promptLogprobs likely tokens to report per prompt token, or null
     */
    SamplingParameters read(
            RequestBody body,
            int maxTokens,
            @Nullable Integer logprobs,
            @Nullable Integer promptLogprobs) {
        refuseUnsupported(body);
        List<Integer> stopTokenIds = body.integers("stop_token_ids");
        stopTokenIds.forEach(token -> requireToken("stop_token_ids", token));
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
                    stops(body),
                    new HashSet<>(stopTokenIds),
                    body.flag("ignore_eos", false),
                    logprobs,
                    promptLogprobs,
                    new TokenRules(bias(body), allowed(body), badWords(body)),
                    body.flag("include_stop_str_in_output", false),
                    body.flag("skip_special_tokens", true));
        } catch (SamplingParameters.OutOfRangeException e) {
            throw ApiException.badRequest(e.field(), String.valueOf(e.getMessage()));
        }
    }

    private static void refuseUnsupported(RequestBody body) {
        body.refuse(UNSUPPORTED);
        JsonNode format = body.node("response_format");
        if (format != null && !"text".equals(format.path("type").asText())) {
            throw ApiException.badRequest(
                    "response_format",
                    "response_format must be of type text: output cannot be constrained to JSON here");
        }
    }

    private static List<String> stops(RequestBody body) {
        List<String> stops = body.texts("stop");
        if (stops.size() > MAX_STOPS
                || stops.stream().anyMatch(stop -> stop.length() > MAX_STOP_LENGTH)) {
            throw ApiException.badRequest(
                    "stop",
                    "stop must be at most %d strings of at most %d characters"
                            .formatted(MAX_STOPS, MAX_STOP_LENGTH));
        }
        return stops;
    }

    private Map<Integer, Float> bias(RequestBody body) {
        Map<Integer, Float> biases = new HashMap<>();
        JsonNode json = body.object("logit_bias");
        if (json == null) {
            return biases;
        }
        json.properties()
                .forEach(
                        entry -> {
                            if (!entry.getValue().isNumber()) {
                                throw RequestBody.wrongType(
                                        "logit_bias", entry.getValue(), "numbers by token id");
                            }
                            double bias =
                                    Math.clamp(entry.getValue().doubleValue(), -MAX_BIAS, MAX_BIAS);
                            biases.put(biasedToken(entry.getKey()), (float) bias);
                        });
        return biases;
    }

    private int biasedToken(String key) {
        try {
            int token = Integer.parseInt(key);
            requireToken("logit_bias", token);
            return token;
        } catch (NumberFormatException e) {
            throw ApiException.badRequest(
                    "logit_bias", "logit_bias must be numbers by token id, but has the key " + key);
        }
    }

    private @Nullable Set<Integer> allowed(RequestBody body) {
        if (body.node("allowed_token_ids") == null) {
            return null;
        }
        List<Integer> allowed = body.integers("allowed_token_ids");
        if (allowed.isEmpty()) {
            throw ApiException.badRequest(
                    "allowed_token_ids",
                    "allowed_token_ids is empty, but must have at least one token");
        }
        allowed.forEach(token -> requireToken("allowed_token_ids", token));
        return new HashSet<>(allowed);
    }

    /** As in vLLM: each word is banned as it begins a text, and as it follows a space. */
    private List<List<Integer>> badWords(RequestBody body) {
        List<String> words = body.texts("bad_words");
        if (words.size() > MAX_BAD_WORDS || words.stream().anyMatch(String::isBlank)) {
            throw ApiException.badRequest(
                    "bad_words",
                    "bad_words must be at most " + MAX_BAD_WORDS + " words, none of them blank");
        }
        List<List<Integer>> runs = new ArrayList<>();
        for (String word : words) {
            List<Integer> first = tokens(word.stripLeading());
            List<Integer> later = tokens(" " + word.stripLeading());
            runs.add(first);
            if (later.size() == first.size() && !later.getFirst().equals(first.getFirst())) {
                runs.add(later);
            }
        }
        return runs;
    }

    private List<Integer> tokens(String text) {
        return Arrays.stream(tokenizer.encode(text, false, true)).boxed().toList();
    }

    private void requireToken(String field, int token) {
        if (token < 0 || token >= vocabularySize) {
            throw ApiException.badRequest(
                    field,
                    field
                            + " has "
                            + token
                            + ", but the vocabulary ends at "
                            + (vocabularySize - 1));
        }
    }
}
