package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.model.tokenizer.IncrementalDecoder;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code POST /v1/completions}: from text or token ids. */
final class CompletionsHandler implements JobSource {
    /** As in OpenAI's API. */
    private static final long DEFAULT_MAX_TOKENS = 16;

    private final Tokenizer tokenizer;
    private final JobReader reader;

    CompletionsHandler(JobReader reader, Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
        this.reader = reader;
    }

    @Override
    public Job job(RequestBody body, String requestId) {
        boolean echo = body.flag("echo", false);
        @Nullable Long given = body.integer("max_tokens");
        // Nothing but the prompt is wanted; the token that a sequence has to have is not told.
        boolean generates = !(echo && given != null && given == 0);
        MaxTokens maxTokens =
                new MaxTokens(
                        "max_tokens", given == null ? DEFAULT_MAX_TOKENS : generates ? given : 1L);
        @Nullable Integer logprobs =
                body.node("logprobs") == null ? null : body.integer("logprobs", 0);
        TokenSpelling spelling =
                new TokenSpelling(tokenizer, body.flag("return_tokens_as_token_ids", false));
        return reader.read(
                body,
                new JobReader.Draft(
                        new TextFormat(spelling),
                        "cmpl-",
                        true,
                        prompts(body, reader.truncation(body, maxTokens), echo),
                        maxTokens,
                        logprobs,
                        echo,
                        generates),
                requestId);
    }

    private List<JobReader.Prompt> prompts(RequestBody body, Truncation truncation, boolean echo) {
        JsonNode prompt = body.node("prompt");
        if (prompt == null) {
            throw ApiException.badRequest("prompt", "prompt is missing");
        }
        if (prompt.isTextual()) {
            var _ = reader.choices(body, 1);
            return List.of(prompt(body, prompt, truncation, echo));
        }
        RequestBody.requireArray(
                "prompt", prompt, "a string, a list of token ids, or a list of either");
        if (prompt.isEmpty()) {
            throw ApiException.badRequest(
                    "prompt", "prompt is an empty list, but must have at least one element");
        }
        if (prompt.get(0).isIntegralNumber()) {
            var _ = reader.choices(body, 1);
            return List.of(prompt(body, prompt, truncation, echo));
        }
        var _ = reader.choices(body, prompt.size());
        List<JobReader.Prompt> prompts = new ArrayList<>();
        for (JsonNode element : prompt) {
            prompts.add(prompt(body, element, truncation, echo));
        }
        return prompts;
    }

    private JobReader.Prompt prompt(
            RequestBody body, JsonNode prompt, Truncation truncation, boolean echo) {
        if (!prompt.isTextual()) {
            List<Integer> tokens = reader.prompt("prompt", prompt, truncation);
            return new JobReader.Prompt(tokens, echo ? text(body, tokens) : "");
        }
        int[] all =
                tokenizer.encode(prompt.textValue(), body.flag("add_special_tokens", true), true);
        List<Integer> tokens = reader.prompt("prompt", all, truncation);
        String whole = tokens.size() < all.length ? text(body, tokens) : prompt.textValue();
        return new JobReader.Prompt(tokens, echo ? whole : "");
    }

    private String text(RequestBody body, List<Integer> tokens) {
        IncrementalDecoder decoder = tokenizer.decoder(body.flag("skip_special_tokens", true));
        StringBuilder text = new StringBuilder();
        tokens.forEach(token -> text.append(decoder.push(token)));
        return text.append(decoder.finish()).toString();
    }
}
